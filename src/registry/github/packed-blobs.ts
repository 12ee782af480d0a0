import type { CacheService } from "./cache-service.ts";
import type { BlobLocation, IndexDirectory } from "./index-entry.ts";
import { createPackWriter, type PackWriter } from "./pack-writer.ts";

type Content = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Where the blobs of a scope are: in packs, which are entries of the service, in the pack that is being sent, or still in memory. */
export interface PackedBlobs {
  find(digest: string): BlobLocation | undefined;
  /** Returns a blob that waits for its place. */
  held(digest: string): Uint8Array | undefined;
  /** Keeps a small blob in memory until `release`. Returns false if there is no room. */
  hold(digest: string, bytes: Uint8Array): boolean;
  release(digest: string): void;
  /** Appends a blob to the pack, which is sent while it grows. `moves`: also one that has a place already. */
  append(digest: string, content: Content, options: { signal: AbortSignal; moves?: boolean }): Promise<void>;
  /** Completes the pack, if there is one. If that fails, nothing in it has been stored. */
  finish(): Promise<void>;
  /** The sizes of complete packs and of the one that is being sent. */
  packs: ReadonlyMap<string, number>;
  isOpen(pack: string): boolean;
  note(directory: Pick<IndexDirectory, "packs" | "locations">): void;
  /** Called for a pack that is gone, or has something else than it should: its blobs are to be stored again. */
  forgetPack(pack: string): void;
}

const maxHeldBytes = 16 * 1024 * 1024;

export function createPackedBlobs(service: CacheService): PackedBlobs {
  const locations = new Map<string, BlobLocation>();
  const packs = new Map<string, number>();
  const held = new Map<string, Uint8Array>();
  /** An index may name them again. */
  const lost = new Set<string>();
  let heldBytes = 0;
  let open: PackWriter | undefined;
  let queue: Promise<unknown> = Promise.resolve();

  /** One after the other: a pack has one end. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = queue.then(work);
    queue = done.catch(() => undefined);
    return done;
  }

  function forgetPack(pack: string): void {
    lost.add(pack);
    packs.delete(pack);
    for (const [digest, place] of locations) if (place.pack === pack) locations.delete(digest);
  }

  return {
    packs,
    find: (digest) => locations.get(digest),
    held: (digest) => held.get(digest),
    hold(digest, bytes) {
      if (held.has(digest)) return true;
      if (heldBytes + bytes.byteLength > maxHeldBytes) return false;
      held.set(digest, bytes);
      heldBytes += bytes.byteLength;
      return true;
    },
    release(digest) {
      heldBytes -= held.get(digest)?.byteLength ?? 0;
      held.delete(digest);
    },
    append: (digest, content, { signal, moves = false }) =>
      inTurn(async () => {
        signal.throwIfAborted();
        if (locations.has(digest) && !moves) return;
        open ??= createPackWriter(service, signal);
        const pack = open;
        const offset = pack.size;
        // What has come of one that fails stays in the pack, and no index names it.
        try {
          for await (const chunk of content) await pack.append(chunk);
        } catch (error) {
          // Its requests have the signal of whoever began it.
          if (signal.aborted) {
            open = undefined;
            forgetPack(pack.key);
          }
          throw error;
        }
        packs.set(pack.key, pack.size);
        locations.set(digest, { pack: pack.key, offset, length: pack.size - offset });
      }),
    finish: () =>
      inTurn(async () => {
        const finished = open;
        open = undefined;
        try {
          await finished?.finish();
        } catch (error) {
          forgetPack(finished?.key ?? "");
          throw error;
        }
      }),
    isOpen: (pack) => pack === open?.key,
    note(directory) {
      for (const [digest, place] of directory.locations)
        if (!lost.has(place.pack)) locations.set(digest, place);
      for (const [pack, size] of directory.packs) if (!lost.has(pack)) packs.set(pack, size);
    },
    forgetPack,
  };
}
