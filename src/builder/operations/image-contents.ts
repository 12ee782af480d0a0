import type { UploadProgress } from "../../service/files/upload.ts";
import type { OperationOutcome } from "../../service/service.ts";
import { streamOf } from "../../streams.ts";
import { ownOperationNetwork } from "../commands/network.ts";
import type { BuildJob } from "../job.ts";
import type { StageState } from "../state/state.ts";
import { createArchiveCollector } from "./gc.ts";
import { retryAfterLoss } from "./missing-image.ts";
import { finishOperations } from "./operation.ts";
import { runOperation } from "./run-operation.ts";

/** Sends contents of an image to the service, hashing them on the way. Each is sent once. */
export interface ImageContents {
  /** Returns the content's SHA-256, possibly before a small content has been sent. */
  take(content: AsyncGenerator<Uint8Array>, size: number): Promise<string>;
  /** Resolves when all have been sent, and reports the totals. */
  finish(): Promise<void>;
}

/** The size up to which contents are held in memory, so that several are sent at once while the archive is read. */
const maxHeldBytes = 1024 * 1024;
const maxConcurrent = 8;

/** Beyond `maxSent` contents, only hashes them: the RUN that needs them sends them together, as one archive. */
export function createImageContents(build: BuildJob, maxSent: number): ImageContents {
  const { service, store } = build.services;
  const begun = new Set<string>();
  const underWay = new Set<Promise<void>>();
  const done: UploadProgress = { files: 0, sentBytes: 0, reused: 0 };
  const collect = createArchiveCollector();
  let failure: { error: unknown } | undefined;

  const isKnown = (sha256: string) => begun.has(sha256) || store.uploads.get(sha256) !== undefined;
  const note = (sha256: string, uuid: string, size: number) => {
    store.uploads.set(sha256, uuid);
    done.files += 1;
    done.sentBytes += size;
  };

  async function sendHeld(bytes: Uint8Array<ArrayBuffer>, sha256: string): Promise<void> {
    const body = new Blob([bytes]);
    const { uuid } = await service.uploadStream(() => body.stream(), { contentLength: bytes.byteLength });
    note(sha256, uuid, bytes.byteLength);
  }

  async function hold(content: AsyncGenerator<Uint8Array>, size: number): Promise<string> {
    const bytes = new Uint8Array(size);
    let at = 0;
    for await (const chunk of content) {
      bytes.set(chunk, at);
      at += chunk.byteLength;
    }
    const sha256 = Bun.CryptoHasher.hash("sha256", bytes, "hex");
    if (isKnown(sha256)) {
      done.files += 1;
      done.reused += 1;
      return sha256;
    }
    if (begun.size >= maxSent) return sha256;
    begun.add(sha256);
    while (underWay.size >= maxConcurrent) await Promise.race(underWay);
    if (failure !== undefined) throw failure.error;
    const sending = sendHeld(bytes, sha256)
      .catch((error: unknown) => {
        failure ??= { error };
      })
      .finally(() => underWay.delete(sending));
    underWay.add(sending);
    return sha256;
  }

  async function passOn(content: AsyncGenerator<Uint8Array>, size: number): Promise<string> {
    if (begun.size >= maxSent) {
      const hasher = new Bun.CryptoHasher("sha256");
      for await (const chunk of content) hasher.update(chunk);
      return hasher.digest("hex");
    }
    const before = { ...done };
    const progress = (bytes: number) => {
      build.emit({ type: "upload-progress", ...before, sentBytes: before.sentBytes + bytes });
    };
    const options = { contentLength: size, progress };
    const { uuid, sha256 } = await service.uploadStream(streamOf(content), options);
    begun.add(sha256);
    note(sha256, uuid, size);
    return sha256;
  }

  return {
    take(content, size) {
      collect();
      return size <= maxHeldBytes ? hold(content, size) : passOn(content, size);
    },
    async finish() {
      await Promise.all(underWay);
      store.uploads.flush();
      if (failure !== undefined) throw failure.error;
      if (done.files > 0) build.emit({ type: "uploaded", ...done });
    },
  };
}

/** A program whose output tells something about an image, for a service that reports little of it. */
interface Question {
  command: string;
  args: readonly string[];
  /** Its purpose, to show. */
  title: string;
  /** The image whose answer this is, if it is the same for images made of that one. */
  about?: string;
}

/** Runs a program in a stage's image and discards its changes. */
export async function askImage(
  { command, args, title, about }: Question,
  { layer }: Pick<StageState, "layer">,
  build: BuildJob,
): Promise<OperationOutcome> {
  const words = [command, ...args].join(" ");
  const step = {
    key: `${words} ${about ?? layer.image}`,
    title: `(${title})`,
    showsOutput: false,
  };
  const ask = () =>
    runOperation(
      {
        image: layer.image,
        command,
        args: [...args],
        shell: false,
        env: {},
        cwd: "/",
        files: {},
        timeout: build.asked.commands.timeoutSeconds,
        disposable: true,
        ...ownOperationNetwork(build.asked.commands.network),
      },
      step,
      build,
    );
  const outcome = await build.shared.questions(step.key, () =>
    retryAfterLoss({ layer, staged: new Map() }, build, ask),
  );
  finishOperations([step.key], build);
  return outcome;
}

/** Returns the exit code of a program that ran to its end; otherwise `undefined`. */
export function exitCodeOf({ status, timedOut, exitCode }: OperationOutcome): number | undefined {
  return status === "SUCCESS" && !timedOut ? (exitCode ?? 0) : undefined;
}

/** Returns true for the exit codes of a shell that mean "not executable" and "not found". */
export function cannotBeStarted(outcome: OperationOutcome): boolean {
  return [126, 127].includes(exitCodeOf(outcome) ?? 0);
}

export function describeEnd(outcome: OperationOutcome): string {
  if (outcome.timedOut) return "it was stopped by its timeout";
  if (outcome.status === "SUCCESS") return `exit code ${outcome.exitCode}`;
  return outcome.error ?? `it ended as ${outcome.status}`;
}
