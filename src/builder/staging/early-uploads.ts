import { type FileToHash, openToHash } from "../../context/hashing/hash-file.ts";
import type { LocalFile, UploadProgress } from "../../service/files/upload.ts";
import type { ImageService } from "../../service/service.ts";
import type { UploadCache } from "../../store/uploads.ts";
import type { EarlyUploads, SmallContents } from "../feed.ts";
import { createUploadCollector } from "../operations/gc.ts";

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
    async finish({ begun: contents, rest }, onProgress) {
      const taken = new Set(contents);
      const done: UploadProgress = { files: 0, sentBytes: 0, reused: 0 };
      for (const sha256 of taken) {
        const content = begun.get(sha256);
        if (content !== undefined) add(done, content);
      }
      const waitingStep: WaitingStep = { contents: taken, done, onProgress };
      waitingSteps.add(waitingStep);
      waiting = waiting.filter(({ sha256 }) => !rest.has(sha256));
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

/** Tells whether files that are found in advance will certainly be needed. */
class Need {
  #isCertain = false;
  #onCertain = () => {};

  get isCertain(): boolean {
    return this.#isCertain;
  }

  declare(): void {
    this.#isCertain = true;
    this.#onCertain();
  }

  withdraw(): void {
    this.#isCertain = false;
  }

  /** Resolves at the latest with `decided`; true if the files will be needed. Only one caller may wait at a time. */
  async settle(decided: Promise<unknown>): Promise<boolean> {
    const { promise: beginning, resolve } = Promise.withResolvers<void>();
    this.#onCertain = resolve;
    if (!this.#isCertain) await Promise.race([beginning, decided]);
    return this.#isCertain;
  }
}
