import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { forEachConcurrently } from "../../service/http/concurrency.ts";
import { version } from "../../version.ts";
import { supportOf } from "../service-support.ts";
import { type DecodedIndex, encodeIndex, type Sign } from "./index-file.ts";
import { makeIndexImage, requireInspect, type ScopeService } from "./index-images.ts";
import { type ReadOptions, type ReadScope, readScope, readSteps } from "./read-scope.ts";
import { type Entry, mergeIndexes, pruneIndex, type ScopeIndex, sectionNames } from "./scope-index.ts";
import { newJournalTag, scopeTag } from "./scope-name.ts";

interface WriteOptions extends ReadOptions {
  sign?: Sign | undefined;
  /** Images with a shell, for a service that can't make an image without a command. */
  bases: readonly string[];
  clock: Clock;
  signal: AbortSignal;
}

/** The result of a write, to show. */
interface WrittenScope {
  /** The number of layers added. */
  added: number;
  all: number;
}

/** The limit of rounds; fewer builds write at once. After that, lost entries stay in the writer's own image for the next one. */
const maxRounds = 10;

/**
 * Adds to a scope: reads it, merges, writes, and looks again. A tag can't be set on the condition that nobody else has moved it,
 * so a writer may overwrite what another has written between its read and its write. Nothing is lost by that: before a writer
 * moves the scope's tag, it tags its image with a tag of its own, too. The next reader or writer finds that image and uses its
 * entries. A later write removes such tags, when all writers that might have missed them are done.
 *
 * @param gone UUIDs of images that the service has lost
 * @returns `undefined` if there was nothing to write
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
    // A writer that has moved the tag since also looks again, and finds this image.
    if (latest !== undefined && main !== latest) return written;
    const merge = (before: ScopeIndex) => pruneIndex(mergeIndexes(before, additions), clock.now(), gone);
    const next = merge(found.index);
    if (found.isWhole && !needsWrite(found.index, next, additions, clock.now(), gone)) {
      if (written !== undefined) await removeOldTags(found, options);
      return written;
    }
    // If nothing has been read of the scope, check first that the service can show an image's contents at all.
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
      verifiedKey: undefined,
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

/** Returns the merged images that are still listed. The others need not be named. */
function listedAmong({ images, merged }: ReadScope): string[] {
  return [...new Set(images.map(({ image }) => image))].filter((image) => merged.has(image));
}

/** Time after which a new use of an entry is worth a write. */
const refreshMilliseconds = 24 * 3600 * 1000;

/** Returns true if the scope should be written. `next`: the index that would be written. Entries that don't fit are no reason. */
export function needsWrite(
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

/** Time after an image's creation in which a writer may still write what it read before. */
const settledMilliseconds = 10 * 60 * 1000;
/** The number of newest journals kept if the service's clock is of no use. */
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
    warn(`cache: cannot remove a tag of an earlier write: ${String(error)}`);
  }
}

/** The number of layers measured at most. Builds have fewer new steps, and each layer takes a request. */
const maxMeasured = 200;
const maxConcurrent = 4;

/** Notes how much each layer adds to its image, if that is unknown and the service reports it. */
async function measureLayers(
  layers: readonly Entry<"layers">[],
  service: ScopeService,
  signal: AbortSignal,
): Promise<void> {
  const unknown = layers.filter(({ bytes }) => bytes === null).slice(0, maxMeasured);
  if (unknown.length === 0 || !(await supportOf(service).layerSizes())) return;
  await forEachConcurrently(unknown, maxConcurrent, signal, async (layer) => {
    try {
      // The last layer is the uppermost.
      layer.bytes = (await service.layerSizes(layer.image)).at(-1)?.size ?? null;
    } catch (error) {
      // The size is for people only, and the index is useful without it.
      if (signal.aborted || !(error instanceof BoughError)) throw error;
    }
  });
}
