import type { Clock } from "../../clock.ts";
import { version } from "../../version.ts";
import type { CachePlace, FoundIndex } from "./cache-place.ts";
import { type DecodedIndex, encodeScopeIndex, type Sign } from "./index-file.ts";
import { type Additions, blobsOf, prepareMerge } from "./merge-additions.ts";
import type { IndexReader } from "./read-index.ts";
import { formatLayers, type ScopeIndex, sectionNames } from "./scope-index.ts";

interface WriteOptions {
  reader: IndexReader;
  /** The index when it was last read. */
  last?: FoundIndex | undefined;
  sign?: Sign | undefined;
  /** Images that no longer exist, as the index names them. */
  gone: ReadonlySet<string>;
  /** The size of all layers together; `undefined`: unlimited. */
  keepBytes?: number | undefined;
  /** Images with a shell, for a service that can't make an image without a command. */
  bases: ReadonlySet<string>;
  /** False if the place may have lost blobs that its index names. */
  trusts: boolean;
  clock: Pick<Clock, "now">;
  warn(text: string): void;
}

/** The result of a write. `added` and `all`: numbers of layers. */
interface WrittenIndex {
  added: number;
  all: number;
  found: FoundIndex;
}

/** The limit of rounds; fewer builds write at once. */
const maxRounds = 10;

/**
 * Adds to a cache: reads it, merges, writes, and looks again, until nothing is missing. Few places can be asked to write on the
 * condition that nobody else has written: each has its own way to find that out afterwards.
 *
 * @returns `undefined` if there was nothing to write
 */
export async function writeScopeIndex(
  place: CachePlace,
  additions: Additions,
  options: WriteOptions,
): Promise<WrittenIndex | undefined> {
  const { reader, last, sign, bases, clock, warn } = options;
  let written: WrittenIndex | undefined;
  for (let round = 0; round < maxRounds; round++) {
    using lock = await place.lock();
    const isCurrent = round === 0 && lock === undefined && place.comparesBeforePut;
    const found = (isCurrent ? last : undefined) ?? (await reader.read());
    const refusal = refusalOf(found, sign);
    if (refusal !== undefined) {
      warn(`cache: nothing is written to ${place.label}: ${refusal}`);
      return undefined;
    }
    // Unusable parts are reported, and replaced by this write.
    reader.report(found);
    const now = clock.now();
    const { whole, merge, bounds } = await prepareMerge(place, found, additions, { ...options, now });
    if (found.isWhole && !needsWrite(found.index, merge(found.index), whole, now, options.gone))
      return written;
    const isNew = ([hash]: [string, unknown]) => !found.index.layers.has(hash);
    await place.measure?.(
      Array.from(whole.layers)
        .filter(isNew)
        .map(([, layer]) => layer),
    );
    const index = merge(await reader.readSteps(found));
    const header = { scope: place.name, by: version, at: now, merged: stayingParts(found) };
    const files = encodeScopeIndex(index, header, sign);
    const blobs = blobsOf(index, bounds.stored);
    const put = await place.put(files, {
      ...{ found, blobs, kept: bounds.kept, isLocked: lock !== undefined, bases },
    });
    if (put === undefined) continue;
    const decoded: DecodedIndex = {
      ...{ header, index, isSigned: sign !== undefined, verifiedKey: undefined },
      ...{ stepsDigest: "", hasSteps: true },
    };
    const added = Array.from(index.layers).filter(isNew).length;
    const stored = reader.add(put.part, decoded, files.index);
    written = { added: written?.added ?? added, all: index.layers.size, found: stored };
    if (lock !== undefined || (await put.settle())) return written;
  }
  const { index } = await reader.read();
  const { size } = additions.index.layers;
  const missing = [...additions.index.layers.keys()].filter((hash) => !index.layers.has(hash)).length;
  if (missing > 0)
    warn(
      `cache: other builds have replaced ${place.label} ${maxRounds} times: ${missing} of ${formatLayers(size)} of this build are not in it`,
    );
  return written;
}

/** Returns why the cache must not be replaced. */
function refusalOf({ failures, isSigned }: FoundIndex, sign: Sign | undefined): string | undefined {
  const foreign = failures.find(({ error }) => error.mustStay);
  if (foreign !== undefined) return foreign.error.message;
  return isSigned && sign === undefined ? "it is signed, and this build has no --cache-sign" : undefined;
}

/** Returns the merged parts that stay listed beside the new one, which names them. */
function stayingParts({ parts, merged }: FoundIndex): string[] {
  return parts.filter(({ id, staysListed }) => staysListed && merged.has(id)).map(({ id }) => id);
}

/** Time after which a new use of an entry is worth a write. */
const refreshMilliseconds = 24 * 3600 * 1000;

/** Returns true if the cache should be written. `next`: the index that would be written. Entries that don't fit are no reason. */
function needsWrite(
  before: ScopeIndex,
  next: ScopeIndex,
  additions: ScopeIndex,
  now: number,
  gone: ReadonlySet<string>,
): boolean {
  for (const name of sectionNames) {
    // Inputs of steps are written along with new layers.
    if (name === "steps") continue;
    for (const key of additions[name].keys()) {
      const [was, is] = [before[name].get(key), next[name].get(key)];
      if (is === undefined) continue;
      if (was === undefined || was.usedAt < now - refreshMilliseconds) return true;
      if (!Bun.deepEquals({ ...was, usedAt: is.usedAt }, is)) return true;
    }
  }
  return before.layers.values().some(({ image }) => gone.has(image));
}
