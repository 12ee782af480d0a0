import { type FileToHash, openToHash } from "../../context/hashing/hash-file.ts";
import type { ImageService } from "../../service/service.ts";
import type { EagerContent, WaitingSteps } from "./waiting-steps.ts";

interface UnhashedOptions {
  begun: Map<string, EagerContent>;
  need: Need;
  steps: WaitingSteps;
  signal: AbortSignal;
}

/** Sends files that are hashed on the way, one at a time. */
export function createUnhashedUploads(
  service: Pick<ImageService, "sendUnhashed">,
  { begun, need, steps, signal }: UnhashedOptions,
) {
  let sending: Promise<void> | undefined;
  let sentBytes = 0;
  const end = () => {
    sentBytes = 0;
    steps.setUnderWay("unhashed", 0, false);
  };

  function send(file: FileToHash, onBytes: (bytes: number) => void): Promise<string> {
    const known = Promise.withResolvers<string>();
    const content: EagerContent = { size: file.size, outcome: "under way" };
    let hash: string | undefined;
    const source = { size: file.size, open: () => openToHash(file) };
    const sent = service.sendUnhashed(source, {
      signal,
      onBytes(bytes) {
        onBytes(Math.max(0, bytes - sentBytes));
        sentBytes = bytes;
        steps.setUnderWay("unhashed", bytes);
      },
      onHash(sha256) {
        hash = sha256;
        begun.set(sha256, content);
        known.resolve(sha256);
      },
    });
    sending = sent
      .then(({ sha256, isReused }) => {
        end();
        content.outcome = isReused ? "reused" : "sent";
        steps.note(sha256, content);
      })
      .catch((error: unknown) => {
        // If the hash is known, the step that needs the content gets the error.
        end();
        if (hash !== undefined) begun.delete(hash);
        need.withdraw();
        known.reject(error);
      })
      .finally(() => {
        sending = undefined;
      });
    return known.promise;
  }

  return {
    get sending() {
      return sending;
    },
    /** Resolves with the hash as soon as it is known; the rest of the file is sent afterwards. */
    send,
  };
}

/** Tells whether files that are found in advance will certainly be needed. */
export class Need {
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
