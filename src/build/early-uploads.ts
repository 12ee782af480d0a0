import type { ImageService, LocalFile, UploadProgress } from "../service/service.ts";
import type { UploadCache } from "../store/uploads.ts";
import { createUploadCollector } from "./leftovers.ts";

/**
 * Contents on their way to the service before the RUN that needs them: while the one before it runs, or while the rest of
 * the context is still hashed. They are sent only where it is certain that the layer has to be made.
 */
export interface EarlyUploads {
  /** A file that some COPY or ADD since the last `cut` stages. */
  offer(file: LocalFile): void;
  /** What is offered since the last `cut` will be needed. */
  begin(): void;
  /** A step begins that needs what was offered so far: that is `due` now, and no more of it is begun. */
  cut(): void;
  readonly due: EarlyUpload;
  /** Resolves when nothing is sent any more. */
  stop(): Promise<void>;
}

/** What was sent, or is being sent, for one step. */
export interface EarlyUpload {
  readonly files: number;
  readonly bytes: number;
  has(sha256: string): boolean;
  /**
   * Waits for what is under way, and answers what it came to; from then on the step takes care of everything. Never rejects:
   * what could not be sent is sent again, and then it is said why it can't be.
   */
  finish(onProgress: (done: UploadProgress) => void): Promise<UploadProgress>;
}

export interface EarlyUploadsOptions {
  service: Pick<ImageService, "uploadFiles">;
  uploads: UploadCache;
  signal: AbortSignal;
}

/** More are not worth the memory that it takes to wait in line. */
const mostWaiting = 10_000;
/** To look up in one go which of them are known already. */
const mostAtOnce = 500;

export function createEarlyUploads(options: EarlyUploadsOptions): EarlyUploads {
  const stopping = new AbortController();
  const signal = AbortSignal.any([options.signal, stopping.signal]);
  const create = () => createCollection({ ...options, signal });
  let collecting = create();
  let due = create();
  return {
    offer: (file) => collecting.offer(file),
    begin: () => collecting.begin(),
    cut() {
      due = collecting;
      due.end();
      collecting = create();
    },
    get due() {
      return due;
    },
    async stop() {
      stopping.abort();
      await Promise.all([due, collecting].map(({ finish }) => finish(() => undefined)));
    },
  };
}

interface Collection extends EarlyUpload {
  offer(file: LocalFile): void;
  begin(): void;
  end(): void;
}

function createCollection({ service, uploads, signal }: EarlyUploadsOptions): Collection {
  let waiting: LocalFile[] = [];
  const begun = new Set<string>();
  let bytes = 0;
  let isOpen = true;
  let hasBegun = false;
  /** Of the batches that have ended, and of the one under way. */
  let ended: UploadProgress = { files: 0, sentBytes: 0, reused: 0 };
  let current: UploadProgress | undefined;
  const collect = createUploadCollector();
  let report: (done: UploadProgress) => void = () => undefined;
  let running: Promise<void> | undefined;

  const soFar = () => (current === undefined ? ended : sum(ended, current));

  async function sendWaiting(): Promise<void> {
    while (isOpen && waiting.length > 0) {
      const batch: LocalFile[] = [];
      for (const file of waiting.splice(0, mostAtOnce)) {
        if (begun.has(file.sha256) || uploads.get(file.sha256) !== undefined) continue;
        begun.add(file.sha256);
        bytes += file.size;
        batch.push(file);
      }
      try {
        await service.uploadFiles(
          batch,
          (done) => {
            current = done;
            collect(soFar().files);
            report(soFar());
          },
          signal,
        );
      } catch {
        // The step that needs them hears of it, when it sends them itself.
        isOpen = false;
      }
      ended = soFar();
      current = undefined;
    }
  }

  function send(): void {
    if (!hasBegun || running !== undefined || waiting.length === 0) return;
    running = sendWaiting().then(() => {
      running = undefined;
      send();
    });
  }

  const end = () => {
    isOpen = false;
    waiting = [];
  };

  return {
    get files() {
      return begun.size;
    },
    get bytes() {
      return bytes;
    },
    has: (sha256) => begun.has(sha256),
    offer(file) {
      if (!isOpen || waiting.length >= mostWaiting) return;
      waiting.push(file);
      send();
    },
    begin() {
      hasBegun = true;
      send();
    },
    end,
    async finish(onProgress) {
      end();
      report = onProgress;
      if (current !== undefined) report(soFar());
      await running;
      begun.clear();
      bytes = 0;
      const done = ended;
      ended = { files: 0, sentBytes: 0, reused: 0 };
      return done;
    },
  };
}

export function sum(one: UploadProgress, other: UploadProgress): UploadProgress {
  return {
    files: one.files + other.files,
    sentBytes: one.sentBytes + other.sentBytes,
    reused: one.reused + other.reused,
  };
}
