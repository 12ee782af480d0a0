import type { Clock } from "../../clock.ts";
import { version } from "../../version.ts";
import { type DecodedIndex, encodeIndex, type Sign } from "./index-file.ts";
import { makeIndexImage, requireInspect } from "./index-images.ts";
import { measureLayers } from "./layer-sizes.ts";
import { type ReadOptions, type ReadScope, readScope, readSteps } from "./read-scope.ts";
import { mergeIndexes, pruneIndex, type ScopeIndex, sectionNames } from "./scope-index.ts";
import { newJournalTag, scopeTag } from "./scope-name.ts";

export interface WriteOptions extends ReadOptions {
  sign?: Sign | undefined;
  /** Images with a shell, for a service that makes none without a command. */
  bases: readonly string[];
  clock: Clock;
  signal: AbortSignal;
}

/** What the one who wrote has left, for people. */
export interface WrittenScope {
  /** Layers added. */
  added: number;
  all: number;
}

/** Fewer write at once. What is lost after these rounds stays in the writer's own image, and comes back with the next write. */
const maxRounds = 10;

/**
 * Adds to a scope: reads it, merges, writes, and looks again. A tag can't be set under the condition that nobody else has moved
 * it, so that a writer may cover what another one has written between its look and its write. Nothing is lost by that: each
 * leaves its image under a tag of its own, too, before it moves the scope's. Whoever looks next, be it the other writer or a
 * reader, finds that image, and has its entries. Such tags go with a later write, when all who might have overlooked them are
 * done.
 *
 * @param gone UUIDs of images that the service has lost
 * @returns `undefined` where there was nothing to write
 */
export async function writeScope(
  name: string,
  additions: ScopeIndex,
  gone: ReadonlySet<string>,
  options: WriteOptions,
): Promise<WrittenScope | undefined> {
  const { service, clock, signal, known, copies, bases, sign, warn } = options;
  let written: WrittenScope | undefined;
  let latest: string | undefined;
  for (let round = 0; round < maxRounds; round++) {
    const found = await readScope(name, options);
    if (found.isNewer || (found.isSigned && sign === undefined)) {
      const why = found.isNewer
        ? "a newer bough wrote it"
        : "it is signed, and this build has no --cache-sign";
      warn(`cache: nothing is written to scope ${name}: ${why}`);
      return undefined;
    }
    const main = found.images.find(({ isMain }) => isMain)?.image;
    // Whoever has moved the tag since looks again as well, and finds this image.
    if (latest !== undefined && main !== latest) return written;
    const merge = (before: ScopeIndex) => pruneIndex(mergeIndexes(before, additions), clock.now(), gone);
    const next = merge(found.index);
    if (found.isWhole && !isDue(found.index, next, additions, clock.now(), gone)) {
      if (written !== undefined) await removeOldTags(found, options);
      return written;
    }
    // Nothing has been read of it: before there is anything to read is the time to find out whether it can be.
    for (const base of found.merged.size === 0 ? bases.slice(0, 1) : []) await requireInspect(base, service);
    const isNew = ([hash]: [string, unknown]) => !found.index.layers.has(hash);
    const made = Array.from(additions.layers).filter(isNew);
    await measureLayers(
      made.map(([, layer]) => layer),
      service,
      signal,
    );
    const index = merge(await readSteps(found, options));
    const header = { scope: name, by: version, at: clock.now(), merged: listedAmong(found) };
    const files = encodeIndex(index, header, sign);
    const image = await makeIndexImage(files, bases, service, signal);
    const decoded: DecodedIndex = {
      header,
      index,
      isSigned: sign !== undefined,
      stepsDigest: "",
      hasSteps: true,
    };
    known.set(image, decoded);
    copies?.set(name, image, files.index);
    await service.tagImage(image, newJournalTag(name));
    await service.tagImage(image, scopeTag(name));
    latest = image;
    written ??= { added: made.length, all: index.layers.size };
  }
  return written;
}

/** Those that nobody can come across any more need not be named. */
function listedAmong({ images, merged }: ReadScope): string[] {
  return [...new Set(images.map(({ image }) => image))].filter((image) => merged.has(image));
}

/** Time after which it is worth a write that an entry is in use. */
const refreshMilliseconds = 24 * 3600 * 1000;

/** `next`: what would be written. What is too much for an index is no reason to try again and again. */
function isDue(
  before: ScopeIndex,
  next: ScopeIndex,
  additions: ScopeIndex,
  now: number,
  gone: ReadonlySet<string>,
): boolean {
  for (const name of sectionNames) {
    // Why a step was run is told by the layers that are new.
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

/** Time after an image was made in which somebody may be about to write what was read before. */
const settledMilliseconds = 10 * 60 * 1000;
/** A service whose clock says nothing keeps the newest so many. */
const maxJournals = 8;

async function removeOldTags({ images, merged }: ReadScope, { service, warn }: WriteOptions): Promise<void> {
  const now = Math.max(...images.map(({ createdAt }) => createdAt));
  const journals = images.filter(({ isMain, image }) => !isMain && merged.has(image));
  const old = journals.filter(
    ({ createdAt }, index) => createdAt < now - settledMilliseconds || index >= maxJournals,
  );
  try {
    for (const { image, tag } of old) await service.removeTag(image, tag);
  } catch (error) {
    warn(`cache: a tag of an earlier write can't be removed: ${String(error)}`);
  }
}
