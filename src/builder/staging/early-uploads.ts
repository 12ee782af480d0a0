import { type FileToHash, openToHash } from "../../context/hashing/hash-file.ts";
import type { LocalFile, UploadProgress } from "../../service/files/upload.ts";
import type { ImageService } from "../../service/service.ts";
import type { UploadCache } from "../../store/uploads.ts";
import { createUploadCollector } from "./gc.ts";
import { Need } from "./need.ts";
import type { SmallContents } from "./small-contents.ts";

/**
 * Contents that are sent to the service before the RUN that needs them: while the RUN before it runs, or while the rest of the
 * context is hashed. They are sent only if it is certain that the layer has to be made.
 */
export interface EarlyUploads {
  /** Keeps contents from hashing until they are sent; `undefined` if nothing is sent. */
  readonly contents: SmallContents | undefined;
  /** Offers a file that a COPY or ADD stages. */
  offer(file: Pick<LocalFile, "absolutePath" | "size">, sha256: string): void;
  /**
   * Hashes a large file while it is sent. Returns `undefined` if it is not certain that the file
   * is needed, or if another one is being sent. If the service turns out to have the content, the rest is not sent.
   */
  hashOnTheWay(
    file: FileToHash,
    onBytes: (bytes: number) => void,
    decided: Promise<unknown>,
  ): Promise<string | undefined>;
  /** Declares that everything offered since the last `markUncertain` will be needed. */
  markNeeded(): void;
  /**
   * Declares that contents which the service is not known to have will be needed: no layer of this machine can have them. A large
   * file is not sent before its hash is known.
   */
  markNew(): void;
  /** Declares that it is uncertain whether the next offers are needed. Drops earlier offers that have not been sent. */
  markUncertain(): void;
  /** Returns true if the content has been sent or is being sent, and no step has taken it over yet. */
  has(sha256: string): boolean;
  /**
   * Takes over the contents of a step: waits for those being sent and returns the totals. Never rejects: a content that could not
   * be sent is not counted, and the step that sends it again gets the error.
   */
  finish(contents: Iterable<string>, onProgress: (done: UploadProgress) => void): Promise<UploadProgress>;
  /** Resolves when nothing is being sent any more. */
  stop(): Promise<void>;
}

/** Sends nothing: a service in this process reads files where they are. */
export const noEarlyUploads: EarlyUploads = {
  contents: undefined,
  offer() {},
  hashOnTheWay: async () => undefined,
  markNeeded() {},
  markNew() {},
  markUncertain() {},
  has: () => false,
  finish: async () => ({ files: 0, sentBytes: 0, reused: 0 }),
  stop: async () => {},
};

interface EarlyUploadsOptions {
  service: Pick<ImageService, "uploadFiles" | "sendUnhashed">;
  uploads: UploadCache;
  contents: SmallContents;
  signal: AbortSignal;
}

interface Content {
  size: number;
  outcome: "under way" | "sent" | "reused";
}

/** A step that waits for its contents. Stages that share a feed can have one each at the same time. */
interface WaitingStep {
  contents: ReadonlySet<string>;
  done: UploadProgress;
  onProgress: (done: UploadProgress) => void;
}

/** The queue's limit: a longer one is not worth its memory. */
const maxWaiting = 10_000;

export function createEarlyUploads(options: EarlyUploadsOptions): EarlyUploads {
  const { service, uploads, contents } = options;
  const stopping = new AbortController();
  const signal = AbortSignal.any([options.signal, stopping.signal]);
  const need = new Need();
  const begun = new Map<string, Content>();
  const collect = createUploadCollector();
  let waiting: LocalFile[] = [];
  let sendsNew = false;
  let sending: Promise<void> | undefined;
  let sendingUnhashed: Promise<void> | undefined;
  /** Bytes sent of files that are not complete yet. */
  let bytesUnderWay = 0;
  let unhashedBytes = 0;
  let count = 0;
  const waitingSteps = new Set<WaitingStep>();

  function onOutcome(sha256: string, content: Content): void {
    for (const { contents, done } of waitingSteps) if (contents.has(sha256)) add(done, content);
  }

  function onChange(): void {
    for (const { done, onProgress } of waitingSteps)
      onProgress({ ...done, sentBytes: done.sentBytes + bytesUnderWay + unhashedBytes });
  }

  /** Yields what waits and the service is not known to have, until a step takes over. */
  function* takeWaiting(taken: string[]): Generator<LocalFile, undefined> {
    while (waitingSteps.size === 0) {
      const file = waiting.shift();
      if (file === undefined) return;
      const { sha256, size } = file;
      if (begun.has(sha256) || uploads.get(sha256) !== undefined) continue;
      begun.set(sha256, { size, outcome: "under way" });
      taken.push(sha256);
      yield { ...file, content: contents.take(sha256) };
    }
  }

  async function send(): Promise<void> {
    const taken: string[] = [];
    let whole = 0;
    const onFile = (sha256: string, isReused: boolean) => {
      const content = begun.get(sha256);
      if (content === undefined) return;
      content.outcome = isReused ? "reused" : "sent";
      if (!isReused) whole += content.size;
      onOutcome(sha256, content);
      collect(++count);
    };
    const progress = ({ sentBytes }: UploadProgress) => {
      bytesUnderWay = sentBytes - whole;
      onChange();
    };
    try {
      await service.uploadFiles(takeWaiting(taken), progress, { signal, onFile });
    } catch {
      // The step that needs them gets the error.
      for (const sha256 of taken) if (begun.get(sha256)?.outcome === "under way") begun.delete(sha256);
      sendsNew = false;
      need.withdraw();
    }
    bytesUnderWay = 0;
  }

  /** Resolves with the hash as soon as it is known; the rest of the file is sent afterwards. */
  function sendUnhashed(file: FileToHash, onBytes: (bytes: number) => void): Promise<string> {
    const known = Promise.withResolvers<string>();
    const content: Content = { size: file.size, outcome: "under way" };
    let hash: string | undefined;
    const source = { size: file.size, open: () => openToHash(file) };
    const sent = service.sendUnhashed(source, {
      signal,
      onBytes(bytes) {
        onBytes(Math.max(0, bytes - unhashedBytes));
        unhashedBytes = bytes;
        onChange();
      },
      onHash(sha256) {
        hash = sha256;
        begun.set(sha256, content);
        known.resolve(sha256);
      },
    });
    sendingUnhashed = sent
      .then(({ sha256, isReused }) => {
        unhashedBytes = 0;
        content.outcome = isReused ? "reused" : "sent";
        onOutcome(sha256, content);
      })
      .catch((error: unknown) => {
        // If the hash is known, the step that needs the content gets the error.
        unhashedBytes = 0;
        if (hash !== undefined) begun.delete(hash);
        need.withdraw();
        known.reject(error);
      })
      .finally(() => {
        sendingUnhashed = undefined;
      });
    return known.promise;
  }

  function sendNext(): void {
    if (
      !(need.isCertain || sendsNew) ||
      sending !== undefined ||
      waiting.length === 0 ||
      waitingSteps.size > 0
    )
      return;
    sending = send().then(() => {
      sending = undefined;
      sendNext();
    });
  }

  return {
    contents,
    offer({ absolutePath, size }, sha256) {
      if (waiting.length >= maxWaiting || signal.aborted) return;
      waiting.push({ absolutePath, sha256, size });
      sendNext();
    },
    async hashOnTheWay(file, onBytes, decided) {
      const isNeeded = await need.settle(decided);
      if (!isNeeded || sendingUnhashed !== undefined || signal.aborted) return undefined;
      return sendUnhashed(file, onBytes);
    },
    markNeeded() {
      need.declare();
      sendNext();
    },
    markNew() {
      sendsNew = true;
      sendNext();
    },
    markUncertain() {
      need.withdraw();
      sendsNew = false;
      waiting = [];
    },
    has: (sha256) => begun.has(sha256),
    async finish(contents, onProgress) {
      const taken = new Set(contents);
      const done: UploadProgress = { files: 0, sentBytes: 0, reused: 0 };
      for (const sha256 of taken) {
        const content = begun.get(sha256);
        if (content !== undefined) add(done, content);
      }
      const waitingStep: WaitingStep = { contents: taken, done, onProgress };
      waitingSteps.add(waitingStep);
      // The step sends the rest of its contents itself.
      waiting = waiting.filter(({ sha256 }) => !taken.has(sha256));
      if ((sending ?? sendingUnhashed) !== undefined && taken.size > 0) onChange();
      await Promise.all([sending, sendingUnhashed]);
      waitingSteps.delete(waitingStep);
      sendNext();
      for (const sha256 of taken) begun.delete(sha256);
      return done;
    },
    async stop() {
      stopping.abort();
      await Promise.all([sending, sendingUnhashed]);
    },
  };
}

function add(done: UploadProgress, { size, outcome }: Content): void {
  if (outcome === "under way") return;
  done.files++;
  if (outcome === "reused") done.reused++;
  else done.sentBytes += size;
}
