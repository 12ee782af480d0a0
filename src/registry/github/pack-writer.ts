import { randomUUID } from "node:crypto";
import { createSemaphore } from "../../semaphore.ts";
import type { CacheService } from "./cache-service.ts";

/** Writes an entry that consists of blobs, and sends it while it grows. */
export interface PackWriter {
  readonly key: string;
  /** The number of bytes so far. */
  readonly size: number;
  /** Appends bytes. Waits if too many blocks are being sent. Calls must not overlap. */
  append(bytes: Uint8Array): Promise<void>;
  /** Completes the entry. Rejects if any part of it could not be sent. */
  finish(): Promise<void>;
}

/** The size of a block, which stays in memory until it has been sent. */
const blockBytes = 8 * 1024 * 1024;
const maxConcurrentBlocks = 4;

export function createPackWriter(service: CacheService, signal: AbortSignal): PackWriter {
  const key = `bough-pack-1-${randomUUID()}`;
  const slots = createSemaphore(maxConcurrentBlocks);
  const ids: string[] = [];
  const sending: Promise<void>[] = [];
  let upload: Promise<string> | undefined;
  let block = new Uint8Array(0);
  let filled = 0;
  let size = 0;

  const reserve = () => {
    upload ??= service.reserve(key, signal).then((url) => {
      if (url === undefined) throw new Error(`unreachable: ${key} is a new name`);
      return url;
    });
    return upload;
  };

  async function sendBlock(): Promise<void> {
    // All ids of an entry must have the same length.
    const id = Buffer.from(String(ids.length).padStart(8, "0")).toString("base64");
    const bytes = block.subarray(0, filled);
    block = new Uint8Array(0);
    filled = 0;
    ids.push(id);
    const release = await slots.acquire(signal);
    const sent = (async () => {
      try {
        await service.putBlock(await reserve(), id, bytes, signal);
      } finally {
        release();
      }
    })();
    // `finish` gets the error.
    sent.catch(() => undefined);
    sending.push(sent);
  }

  return {
    key,
    get size() {
      return size;
    },
    async append(bytes) {
      for (let rest = bytes; rest.byteLength > 0; ) {
        if (block.byteLength === 0) block = new Uint8Array(blockBytes);
        const part = rest.subarray(0, blockBytes - filled);
        block.set(part, filled);
        filled += part.byteLength;
        size += part.byteLength;
        rest = rest.subarray(part.byteLength);
        if (filled === blockBytes) await sendBlock();
      }
    },
    async finish() {
      if (ids.length === 0) await service.put(await reserve(), block.subarray(0, filled), signal);
      else {
        if (filled > 0) await sendBlock();
        await Promise.all(sending);
        await service.putBlockList(await reserve(), ids, signal);
      }
      await service.finalize(key, size, signal);
    },
  };
}
