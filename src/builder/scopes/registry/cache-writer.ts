import { type Clock, steadyTime } from "../../../clock.ts";
import { messageOf } from "../../../errors.ts";
import { RegistryError } from "../../../registry/registry-error.ts";
import { formatLayers } from "../scope-index.ts";
import type { ScopeKeys } from "../signature.ts";
import type { StoredCache } from "./artifact.ts";
import { directoryIn, isDirectory, type OpenTarget } from "./cache-store.ts";
import { tidyDirectory } from "./tidy-directory.ts";
import type { Additions } from "./translate.ts";
import { joinAdditions, writeCache } from "./write-cache.ts";

/** Sends the layers of a build, and returns what it adds. `trusts`: the store is believed to have what its manifest names. */
type MakeAdditions = (trusts: boolean) => Promise<Additions>;

/** The only writer of a cache in this process. It collects what several builds add. */
export interface CacheWriter {
  /** @param gone names of images that can't be had any more */
  add(make: MakeAdditions, gone: ReadonlySet<string>): Promise<void>;
  /** Writes what was added since the last write. Rejects only if interrupted. */
  write(): Promise<void>;
}

interface WriterOptions extends ScopeKeys {
  /** The cache as it was read. */
  before(): Promise<StoredCache | undefined>;
  clock: Clock;
  signal: AbortSignal;
  log: { info(text: string): void; warn(text: string): void };
}

/** Statuses of a store that lets this process only read. */
const readOnlyStatuses: readonly number[] = [401, 403];
/** Statuses of a registry that refuses a manifest because it has lost blobs that the cache kept. */
const mayLackBlobs: readonly number[] = [400, 404];

export function createCacheWriter(
  target: OpenTarget,
  { before, clock, signal, log, sign, verify }: WriterOptions,
): CacheWriter {
  const made: MakeAdditions[] = [];
  const gone = new Set<string>();
  let pending: Additions | undefined;
  let stored: StoredCache | undefined;
  let writtenAt = steadyTime(clock);
  let writing: Promise<void> | undefined;
  let isReadOnly = false;

  /** The build has succeeded: a full disk, a damaged file or a token that only reads costs the cache only. */
  function warn(error: unknown): void {
    signal.throwIfAborted();
    // What is refused to one build of a command is refused to all, and said once.
    if (isReadOnly) return;
    isReadOnly = error instanceof RegistryError && readOnlyStatuses.includes(error.status ?? 0);
    log.warn(`cache: nothing is written to ${target.label}: ${messageOf(error)}`);
  }

  async function writePending(): Promise<void> {
    const additions = pending;
    if (additions === undefined || isReadOnly) return;
    pending = undefined;
    stored ??= await before();
    const write = (all: Additions, trusts: boolean) =>
      writeCache(target, all, stored, { sign, verify, gone, trusts, clock, signal, warn: log.warn });
    try {
      const written = await write(additions, true).catch(async (error: unknown) => {
        if (!(error instanceof RegistryError && mayLackBlobs.includes(error.status ?? 0))) throw error;
        // Other builds of this command may have left out the same blobs.
        const again = await Promise.all(made.map((make) => make(false)));
        return await write(again.reduce(joinAdditions), false);
      });
      if (written === undefined) return;
      stored = written.stored;
      if (isDirectory(target.address))
        // The cache is complete without it; the next build tries again.
        await tidyDirectory(directoryIn(target.address), clock.now()).catch(() => undefined);
      log.info(`cache: ${target.label} has ${formatLayers(written.all)}, ${written.added} new`);
    } catch (error) {
      warn(error);
    }
  }

  async function write(): Promise<void> {
    // One after the other; the next write has what was added meanwhile.
    while (writing !== undefined) await writing;
    writing = writePending().finally(() => {
      writing = undefined;
      writtenAt = steadyTime(clock);
    });
    await writing;
  }

  return {
    async add(make, lost) {
      if (isReadOnly) return;
      made.push(make);
      for (const image of lost) gone.add(image);
      try {
        const additions = await make(true);
        pending = pending === undefined ? additions : joinAdditions(pending, additions);
      } catch (error) {
        warn(error);
      }
      const isDue = steadyTime(clock) - writtenAt > target.store.minWriteMilliseconds;
      if (writing === undefined && isDue) write().catch(() => undefined);
    },
    write,
  };
}
