import type { ImageService, LocalFile, UploadProgress } from "../../service/service.ts";
import type { UploadCache } from "../../store/uploads.ts";
import { createUploadCollector } from "./gc.ts";

/**
 * Contents on their way to the service before the RUN that needs them: while the one before it runs, or while the rest of
 * the context is still hashed. They are sent only where it is certain that the layer has to be made.
 */
export interface EarlyUploads {
  /** A file that some COPY or ADD stages. */
  offer(file: Pick<LocalFile, "absolutePath" | "size">, sha256: string): void;
  /** What is offered from the last `hold` on will be needed. */
  begin(): void;
  /** What is offered from here on may or may not be needed; whoever needs what was offered before sends the rest of it. */
  hold(): void;
  /** Returns whether that content was sent, or is being sent, and nobody has taken it over yet. */
  has(sha256: string): boolean;
  /**
   * Takes over the contents of a step: waits for what is under way, and returns what they came to. Never rejects: what could
   * not be sent is not counted, and whoever sends it again hears why.
   */
  finish(contents: Iterable<string>, onProgress: (done: UploadProgress) => void): Promise<UploadProgress>;
  /** Resolves when nothing is sent any more. */
  stop(): Promise<void>;
}

interface EarlyUploadsOptions {
  service: Pick<ImageService, "uploadFiles">;
  uploads: UploadCache;
  signal: AbortSignal;
}

interface Content {
  size: number;
  outcome: "under way" | "sent" | "reused";
}

/** More are not worth the memory that it takes to wait in line. */
const maxWaiting = 10_000;
/** How many are looked up in one go, to find those that are known already. */
const maxBatch = 500;

export function createEarlyUploads(options: EarlyUploadsOptions): EarlyUploads {
  const { service, uploads } = options;
  const stopping = new AbortController();
  const signal = AbortSignal.any([options.signal, stopping.signal]);
  const begun = new Map<string, Content>();
  const collect = createUploadCollector();
  let waiting: LocalFile[] = [];
  let isNeeded = false;
  let sending: Promise<void> | undefined;
  /** Bytes of files that are not whole at the service yet. */
  let bytesUnderWay = 0;
  let count = 0;
  let onOutcome = (_sha256: string, _content: Content) => {};
  let onChange = () => {};

  function takeBatch(): LocalFile[] {
    return waiting.splice(0, maxBatch).filter(({ sha256, size }) => {
      if (begun.has(sha256) || uploads.get(sha256) !== undefined) return false;
      begun.set(sha256, { size, outcome: "under way" });
      return true;
    });
  }

  async function send(batch: readonly LocalFile[]): Promise<void> {
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
      await service.uploadFiles(batch, progress, { signal, onFile });
    } catch {
      // Whoever needs them hears of it.
      for (const { sha256 } of batch) if (begun.get(sha256)?.outcome === "under way") begun.delete(sha256);
      isNeeded = false;
    }
    bytesUnderWay = 0;
  }

  function go(): void {
    if (!isNeeded || sending !== undefined || waiting.length === 0) return;
    sending = send(takeBatch()).then(() => {
      sending = undefined;
      go();
    });
  }

  return {
    offer({ absolutePath, size }, sha256) {
      if (waiting.length >= maxWaiting || signal.aborted) return;
      waiting.push({ absolutePath, sha256, size });
      go();
    },
    begin() {
      isNeeded = true;
      go();
    },
    hold() {
      isNeeded = false;
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
      onOutcome = (sha256, content) => {
        if (taken.has(sha256)) add(done, content);
      };
      onChange = () => onProgress({ ...done, sentBytes: done.sentBytes + bytesUnderWay });
      if (sending !== undefined && taken.size > 0) onChange();
      await sending;
      onOutcome = () => {};
      onChange = () => {};
      for (const sha256 of taken) begun.delete(sha256);
      return done;
    },
    async stop() {
      stopping.abort();
      await sending;
    },
  };
}

function add(done: UploadProgress, { size, outcome }: Content): void {
  if (outcome === "under way") return;
  done.files++;
  if (outcome === "reused") done.reused++;
  else done.sentBytes += size;
}
