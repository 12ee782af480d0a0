import type { ScopeCopies } from "../../store/store.ts";
import {
  type DecodedIndex,
  decodeIndex,
  decodeSteps,
  UnusableIndexError,
  type Verify,
} from "./index-file.ts";
import { type IndexImage, listIndexImages, readIndexFile, type ScopeService } from "./index-images.ts";
import { emptyIndex, mergeIndexes, type ScopeIndex } from "./scope-index.ts";

/** The contents of a scope, merged from all images that have a part of it. */
export interface ReadScope {
  /** The index without the inputs of steps; see `readSteps`. */
  index: ScopeIndex;
  /** All of its images, the scope's own first. */
  images: readonly IndexImage[];
  /** UUIDs of images whose entries are in the index. */
  merged: ReadonlySet<string>;
  /** True if the image with the scope's own tag has all of it. */
  isWhole: boolean;
  isSigned: boolean;
  /** Fingerprints of the keys that have signed its parts; null for a part whose signature was not verified. */
  keys: ReadonlySet<string | null>;
  /** True if a newer bough wrote some of it: it must not be replaced. */
  isNewer: boolean;
  /** The time (milliseconds since the epoch) and bough's version of the last write; `undefined` if there is no such scope. */
  written: { at: number; by: string } | undefined;
}

export interface ReadOptions {
  service: ScopeService;
  /** `undefined`: an index needs no signature. */
  verify?: Verify | undefined;
  /** Reports why a part of it can't be used. */
  warn(text: string): void;
  /** Indexes that were read before, by image. An image never changes. */
  known: Map<string, DecodedIndex | UnusableIndexError>;
  /** Indexes that an earlier build has read. */
  copies?: ScopeCopies | undefined;
}

/** Reads a scope. Unless it is being written just now, this takes one lookup and one download. */
export async function readScope(name: string, options: ReadOptions): Promise<ReadScope> {
  const images = await listIndexImages(name, options.service);
  const merged = new Set<string>();
  const parts: DecodedIndex[] = [];
  let isWhole = false;
  for (const { image, isMain } of images) {
    if (merged.has(image)) continue;
    const part = await readPart(image, name, options);
    if (part === undefined) continue;
    for (const other of [image, ...part.header.merged]) merged.add(other);
    isWhole = isMain;
    parts.push(part);
  }
  const newest = parts
    .map(({ header: { at, by } }) => ({ at, by }))
    .sort((one, other) => other.at - one.at)[0];
  return {
    index: mergeAll(parts),
    images,
    merged,
    isWhole,
    isSigned: parts.some(({ isSigned }) => isSigned),
    keys: new Set(parts.map(({ verifiedKey }) => verifiedKey ?? null)),
    isNewer: images.some(({ image }) => isOfNewer(options.known.get(image))),
    written: newest,
  };
}

/** Returns the same index with the inputs of steps, which take another download. */
export async function readSteps(
  { images, merged }: ReadScope,
  { service, known }: ReadOptions,
): Promise<ScopeIndex> {
  const parts: DecodedIndex[] = [];
  for (const image of new Set(images.map((image) => image.image))) {
    const part = known.get(image);
    if (!merged.has(image) || part === undefined || part instanceof UnusableIndexError) continue;
    const steps = part.hasSteps ? undefined : await readIndexFile(image, "steps", service);
    if (steps !== undefined) decodeSteps(steps, part);
    parts.push(part);
  }
  return mergeAll(parts);
}

function mergeAll([first = { index: emptyIndex() }, ...others]: readonly Pick<
  DecodedIndex,
  "index"
>[]): ScopeIndex {
  return others.reduce((index, part) => mergeIndexes(index, part.index), first.index);
}

function isOfNewer(found: DecodedIndex | UnusableIndexError | undefined): boolean {
  return found instanceof UnusableIndexError && found.isNewer;
}

async function readPart(
  image: string,
  name: string,
  { service, verify, warn, known, copies }: ReadOptions,
): Promise<DecodedIndex | undefined> {
  const before = known.get(image);
  if (before !== undefined) return before instanceof UnusableIndexError ? undefined : before;
  try {
    const copy = copies?.get(image);
    const bytes = copy ?? (await readIndexFile(image, "index", service));
    if (bytes === undefined) throw new UnusableIndexError("its image has no index, or no longer exists");
    const decoded = decodeIndex(bytes, name, verify);
    known.set(image, decoded);
    if (copy === undefined) copies?.set(name, image, bytes);
    return decoded;
  } catch (error) {
    if (!(error instanceof UnusableIndexError)) throw error;
    warn(`cache: the index of scope ${name} (image ${image}) is not used: ${error.message}`);
    known.set(image, error);
    return undefined;
  }
}
