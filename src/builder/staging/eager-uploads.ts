import type { LocalFile, UploadProgress } from "../../service/files/upload.ts";
import type { ImageService } from "../../service/service.ts";
import type { UploadCache } from "../../store/uploads.ts";
import { createUploadCollector } from "../operations/gc.ts";
import type { EagerUploads, SmallContents } from "../prefetch.ts";
import { createUnhashedUploads, Need } from "./unhashed-uploads.ts";
import { countUpload, createWaitingSteps, type EagerContent, type WaitingStep } from "./waiting-steps.ts";

/** Sends nothing: a service in this process reads files where they are. */
export const noEagerUploads: EagerUploads = {
  contents: undefined,
  offer() {},
  hashWhileSending: async () => undefined,
  markNeeded() {},
  markNew() {},
  markUncertain() {},
  has: () => false,
  finish: async () => ({ files: 0, sentBytes: 0, reused: 0 }),
  stop: async () => {},
};

interface EagerUploadsOptions {
  service: Pick<ImageService, "uploadFiles" | "sendUnhashed">;
  uploads: UploadCache;
  contents: SmallContents;
  signal: AbortSignal;
}

/** The queue's limit: a longer one is not worth its memory. */
const maxWaiting = 10_000;

export function createEagerUploads(options: EagerUploadsOptions): EagerUploads {
  const { service, uploads, contents } = options;
  const stopping = new AbortController();
  const signal = AbortSignal.any([options.signal, stopping.signal]);
  const need = new Need();
  const begun = new Map<string, EagerContent>();
  const collect = createUploadCollector();
  let waiting: LocalFile[] = [];
  let sendsNew = false;
  let sending: Promise<void> | undefined;
  let count = 0;
  const steps = createWaitingSteps();
  const unhashed = createUnhashedUploads(service, { begun, need, steps, signal });

  /** Yields what waits and the service is not known to have, until a step takes over. */
  function* takeWaiting(taken: string[]): Generator<LocalFile, undefined> {
    while (!steps.isWaiting) {
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
      steps.note(sha256, content);
      collect(++count);
    };
    const progress = ({ sentBytes }: UploadProgress) => {
      steps.setUnderWay("hashed", sentBytes - whole);
    };
    try {
      await service.uploadFiles(takeWaiting(taken), progress, { signal, onFile });
    } catch {
      // The step that needs them gets the error.
      for (const sha256 of taken) if (begun.get(sha256)?.outcome === "under way") begun.delete(sha256);
      sendsNew = false;
      need.withdraw();
    }
    steps.setUnderWay("hashed", 0, false);
  }

  function sendNext(): void {
    if (!(need.isCertain || sendsNew) || sending !== undefined || waiting.length === 0 || steps.isWaiting)
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
    async hashWhileSending(file, onBytes, decided) {
      const isNeeded = await need.settle(decided);
      if (!isNeeded || unhashed.sending !== undefined || signal.aborted) return undefined;
      return unhashed.send(file, onBytes);
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
    async finish({ begun: contents, rest }, onProgress) {
      const taken = new Set(contents);
      const done: UploadProgress = { files: 0, sentBytes: 0, reused: 0 };
      for (const sha256 of taken) {
        const content = begun.get(sha256);
        if (content !== undefined) countUpload(done, content);
      }
      const step: WaitingStep = { contents: taken, done, onProgress };
      steps.add(step);
      waiting = waiting.filter(({ sha256 }) => !rest.has(sha256));
      if ((sending ?? unhashed.sending) !== undefined && taken.size > 0) steps.report();
      await Promise.all([sending, unhashed.sending]);
      steps.delete(step);
      sendNext();
      for (const sha256 of taken) begun.delete(sha256);
      return done;
    },
    async stop() {
      stopping.abort();
      await Promise.all([sending, unhashed.sending]);
    },
  };
}
