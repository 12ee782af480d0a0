import { BoughError } from "../../errors.ts";
import { forEachConcurrently } from "../../service/http/concurrency.ts";
import type { ScopeCopies } from "../../store/store.ts";
import { supportOf } from "../service-support.ts";
import type { CachePlace, FoundIndex } from "./cache-place.ts";
import {
  type IndexImage,
  listIndexImages,
  makeIndexImage,
  readIndexFile,
  requireInspect,
  type ScopeService,
} from "./index-images.ts";
import type { ScopeEntry } from "./scope-index.ts";
import { newJournalTag, scopeTag } from "./scope-name.ts";

interface PlaceOptions {
  service: ScopeService;
  signal: AbortSignal;
  /** Indexes that an earlier build has read. */
  copies?: ScopeCopies | undefined;
  warn(text: string): void;
}

/**
 * The place of a scope: tagged images of a service. A service can't set a tag on the condition that nobody has moved it meanwhile, so a writer
 * may overwrite what another has written between its read and its write. Nothing is lost by that: before a writer moves the scope's
 * tag, it gives its image a tag of its own, its journal. The next reader or writer finds that image and uses its entries. A later write
 * removes journals once all writers that might have missed them are done.
 */
export function createScopePlace(scope: string, options: PlaceOptions): CachePlace {
  const { service, signal, copies } = options;
  const label = `scope ${scope}`;
  const partOf = (image: string, isMain: boolean) => ({
    ...{ id: image, label: `the index of ${label} (image ${image})` },
    ...{ isMain, staysListed: true, kept: new Set<string>() },
  });

  return {
    ...{ label, title: scope, name: scope, copies, comparesBeforePut: false },
    minWriteIntervalMilliseconds: Number.POSITIVE_INFINITY,
    lock: async () => undefined,

    async list() {
      const images = await listIndexImages(scope, service);
      // The scope's own image has two tags.
      const first = new Map<string, IndexImage>();
      for (const found of images) if (!first.has(found.image)) first.set(found.image, found);
      return Array.from(first.values(), ({ image, isMain }) => partOf(image, isMain));
    },

    get: ({ id }, file) => readIndexFile(id, file, service),

    measure: (layers) => measureLayers(layers, service, signal),

    async put(files, { found, bases }) {
      // If nothing has been read of the scope, check first that the service can show an image's contents at all.
      const [base] = bases;
      if (found.merged.size === 0 && base !== undefined) await requireInspect(base, service);
      const image = await makeIndexImage(files, [...bases], service, signal);
      await service.tagImage(image, newJournalTag(scope));
      await service.tagImage(image, scopeTag(scope));
      return { part: partOf(image, true), settle: () => settle(image, scope, found, options) };
    },
  };
}

/** Returns false if other writers have written entries that are still missing; otherwise removes old journals. */
async function settle(
  image: string,
  scope: string,
  { merged, failures }: FoundIndex,
  options: PlaceOptions,
): Promise<boolean> {
  const images = await listIndexImages(scope, options.service);
  // A writer that has moved the tag since also looks again, and finds this image.
  if (images.find(({ isMain }) => isMain)?.image !== image) return true;
  const unusable = new Set(failures.map(({ part }) => part.id));
  if (!images.every((other) => other.image === image || merged.has(other.image) || unusable.has(other.image)))
    return false;
  await removeOldTags(
    images.filter((other) => !other.isMain && !unusable.has(other.image)),
    images,
    options,
  );
  return true;
}

/** Time after an image's creation in which a writer may still write what it read before. */
const settledMilliseconds = 10 * 60 * 1000;
/** The number of newest journals kept if the service's clock is of no use. */
const maxJournals = 8;

async function removeOldTags(
  journals: readonly IndexImage[],
  all: readonly IndexImage[],
  { service, warn }: PlaceOptions,
): Promise<void> {
  const now = Math.max(...all.map(({ createdAt }) => createdAt));
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

/** Sets how many bytes each layer adds to its image, if that is unknown and the service reports it. */
async function measureLayers(
  layers: readonly ScopeEntry<"layers">[],
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
