import { type Clock, steadyTime } from "../../clock.ts";
import { messageOf } from "../../errors.ts";
import { RegistryError } from "../../registry/registry-error.ts";
import type { CachePlace, FoundIndex } from "./cache-place.ts";
import { type Additions, joinAdditions } from "./merge-additions.ts";
import type { IndexReader } from "./read-index.ts";
import { formatLayers } from "./scope-index.ts";
import type { ScopeKeys } from "./signature.ts";
import { writeScopeIndex } from "./write-index.ts";

/** Returns a build's additions, after sending its layers. `trusts`: true if the place is assumed to have all blobs that its index names. */
type MakeAdditions = (trusts: boolean) => Promise<Additions>;

/** Further facts about a build, and its limit. */
interface BuildLimits {
  /** Images that no longer exist, as the index names them. */
  gone: ReadonlySet<string>;
  /** Images with a shell. */
  bases: ReadonlySet<string>;
  /** The maximum size of all layers together; `undefined`: unlimited. The largest limit of all builds is used. */
  keepBytes?: number | undefined;
}

/** The only writer of a cache in this process. It collects what several builds add. */
export interface CacheWriter {
  add(make: MakeAdditions, limits: BuildLimits): Promise<void>;
  /** Writes what was added since the last write. Rejects only if interrupted. */
  write(): Promise<void>;
}

interface WriterOptions extends Pick<ScopeKeys, "sign"> {
  reader: IndexReader;
  /** Returns the index that the builds have read; `undefined` if it can't be read. */
  before(): Promise<FoundIndex | undefined>;
  clock: Clock;
  signal: AbortSignal;
  log: { info(text: string): void; warn(text: string): void };
}

/** HTTP statuses of a store that this process may only read. */
const readOnlyStatuses: readonly number[] = [401, 403];
/** HTTP statuses of a registry that refuses a manifest because it has lost blobs that the cache kept. */
const mayLackBlobs: readonly number[] = [400, 404];

export function createCacheWriter(
  place: CachePlace,
  { reader, before, clock, signal, log, sign }: WriterOptions,
): CacheWriter {
  const made: MakeAdditions[] = [];
  const gone = new Set<string>();
  const bases = new Set<string>();
  let keepBytes = 0;
  let pending: Additions | undefined;
  let last: FoundIndex | undefined;
  let writtenAt = steadyTime(clock);
  let writing: Promise<void> | undefined;
  let isReadOnly = false;

  /** Warns instead of failing: the build has succeeded, and only the cache is affected. */
  function warn(error: unknown): void {
    signal.throwIfAborted();
    // A refusal applies to all builds of the command, and is reported once.
    if (isReadOnly) return;
    isReadOnly = error instanceof RegistryError && readOnlyStatuses.includes(error.status ?? 0);
    log.warn(`cache: nothing is written to ${place.label}: ${messageOf(error)}`);
  }

  async function writePending(): Promise<void> {
    const additions = pending;
    if (additions === undefined || isReadOnly) return;
    pending = undefined;
    if (place.comparesBeforePut) last ??= await before();
    const options = { reader, last, sign, gone, bases, keepBytes, clock, warn: log.warn };
    try {
      const written = await writeScopeIndex(place, additions, { ...options, trusts: true }).catch(
        async (error: unknown) => {
          if (!(error instanceof RegistryError && mayLackBlobs.includes(error.status ?? 0))) throw error;
          // Other builds of this command may have left out the same blobs.
          const again = await Promise.all(made.map((make) => make(false)));
          const all = again.reduce((one, other) => joinAdditions(place, one, other));
          return await writeScopeIndex(place, all, { ...options, trusts: false });
        },
      );
      if (written === undefined) return;
      last = written.found;
      log.info(`cache: ${place.label} has ${formatLayers(written.all)}, ${written.added} new`);
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
    async add(make, limits) {
      if (isReadOnly) return;
      made.push(make);
      for (const image of limits.gone) gone.add(image);
      for (const image of limits.bases) bases.add(image);
      keepBytes = Math.max(keepBytes, limits.keepBytes ?? Number.POSITIVE_INFINITY);
      try {
        const additions = await make(true);
        pending = pending === undefined ? additions : joinAdditions(place, pending, additions);
      } catch (error) {
        warn(error);
      }
      const isDue = steadyTime(clock) - writtenAt > place.minWriteIntervalMilliseconds;
      if (writing === undefined && isDue) write().catch(() => undefined);
    },
    write,
  };
}
