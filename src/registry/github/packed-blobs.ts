import type { CacheService } from "./cache-service.ts";
import type { BlobLocation, IndexDirectory } from "./index-entry.ts";
import { createPackWriter, type PackWriter } from "./pack-writer.ts";

type Content = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** The locations of a scope's blobs: in packs, which are entries of the service, in the pack that is being sent, or in memory. */
export interface PackedBlobs {
  find(digest: string): BlobLocation | undefined;
  /** Returns a blob that is held in memory. */
  held(digest: string): Uint8Array | undefined;
  /** Keeps a small blob in memory until `release`. Returns false if there is no room. */
  hold(digest: string, bytes: Uint8Array): boolean;
  release(digest: string): void;
  /** Appends a blob to the pack, which is sent while it grows. `moves`: also if the blob is in another pack. */
  append(digest: string, content: Content, options: { signal: AbortSignal; moves?: boolean }): Promise<void>;
  /** Completes the pack, if there is one. If that fails, nothing in it has been stored. */
  finish(): Promise<void>;
  /** The sizes of complete packs and of the one that is being sent. */
  packs: ReadonlyMap<string, number>;
  isOpen(pack: string): boolean;
  addDirectory(directory: Pick<IndexDirectory, "packs" | "locations">): void;
  /** Forgets a pack that is missing or damaged, so that its blobs are stored again. */
  forgetPack(pack: string): void;
}

const maxHeldBytes = 16 * 1024 * 1024;

export function createPackedBlobs(service: CacheService): PackedBlobs {
  const locations = new Map<string, BlobLocation>();
  const packs = new Map<string, number>();
  const held = new Map<string, Uint8Array>();
  /** Forgotten packs, which indexes may name again. */
  const lost = new Set<string>();
  let heldBytes = 0;
  let open: PackWriter | undefined;
  let queue: Promise<unknown> = Promise.resolve();

  /** Performs work after all earlier work, since appends to a pack must not overlap. */
  function enqueue<T>(work: () => Promise<T>): Promise<T> {
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
      enqueue(async () => {
        signal.throwIfAborted();
        if (locations.has(digest) && !moves) return;
        open ??= createPackWriter(service, signal);
        const pack = open;
        const offset = pack.size;
        // After a failure, the received bytes stay in the pack, and no index names them.
        try {
          for await (const chunk of content) await pack.append(chunk);
        } catch (error) {
          // The pack's requests have the signal of the first append.
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
      enqueue(async () => {
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
    addDirectory(directory) {
      for (const [digest, place] of directory.locations)
        if (!lost.has(place.pack)) locations.set(digest, place);
      for (const [pack, size] of directory.packs) if (!lost.has(pack)) packs.set(pack, size);
    },
    forgetPack,
  };
}
