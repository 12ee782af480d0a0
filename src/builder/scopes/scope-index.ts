import { isDigest } from "../../image/digest.ts";
import { asId, asNumber } from "../../service/http/json.ts";
import { isSha256 } from "../../sha256.ts";

/** Reads a field of an index's entry from JSON; returns `undefined` for an invalid value. */
type Field<Value> = (value: unknown) => Value | undefined;

const id: Field<string> = asId;
const text: Field<string> = (value) => (typeof value === "string" ? value : undefined);
const number: Field<number> = (value) => {
  const found = asNumber(value);
  return found !== undefined && found >= 0 ? found : undefined;
};
/** Milliseconds since the epoch, as a Date can hold them. */
export const timestamp: Field<number> = (value) => {
  const found = number(value);
  return found !== undefined && found <= 8.64e15 ? found : undefined;
};
const sha256: Field<string> = (value) => (isSha256(value) ? value : undefined);
const digest: Field<string> = (value) => (isDigest(value) ? value : undefined);

function orNull<Value>(field: Field<Value>): Field<Value | null> {
  return (value) => (value === null ? null : field(value));
}

export type EntryFields = Readonly<Record<string, Field<string | number | null>>>;

/** The entry that the fields make up. */
type EntryOf<Of extends EntryFields> = {
  -readonly [Name in keyof Of]: Exclude<ReturnType<Of[Name]>, undefined>;
};

/** The time of the last use, in milliseconds since the epoch. Every entry has it. */
const usedAt: Field<number> = timestamp;

/** A section of an index: its key, the fields of its entries, and the limits of entries and of their characters. */
interface Section<Of extends EntryFields> {
  key: Field<string>;
  fields: Of & { usedAt: Field<number> };
  maxEntries: number;
  maxCharacters: number;
}

const unbounded = Number.POSITIVE_INFINITY;

export const sections = {
  /** Layers by chain hash. `madeAt`: milliseconds since the epoch; `by`: a version of bough. */
  layers: section(sha256, 10_000, unbounded, {
    image: id,
    operation: orNull(id),
    title: text,
    madeAt: timestamp,
    bytes: orNull(number),
    seconds: orNull(number),
    by: orNull(text),
  }),
  /** Layers of COPYs between images, by the hash of all inputs; see store/copies.ts. */
  copies: section(sha256, 10_000, unbounded, { place: sha256, source: id, layer: sha256 }),
  /**
   * The sources of a COPY from an image as JSON, by image and words; see store/copies.ts. Without them, on a service that cannot
   * copy between images, every new machine would download all that a COPY takes, only to find its layer.
   */
  contents: section(text, 1000, 4 * 1024 * 1024, { sources: text }),
  /** The inputs of steps, for `--explain`, by Dockerfile and instruction. They are in a file of their own. */
  steps: section(text, 1000, 4 * 1024 * 1024, { ordinal: number, hash: sha256, title: text, inputs: text }),
  /**
   * Only outside a service, in a cache whose images are named by their contents: what an image is made of. `chain`: its uppermost
   * layer; null for an image without files. `config` and `origin`: JSON, in `texts`.
   */
  images: section(sha256, 10_000, unbounded, { chain: orNull(sha256), config: sha256, origin: sha256 }),
  /** Layers by OCI's ChainID, which covers those below. */
  chains: section(sha256, 15_000, unbounded, {
    below: orNull(sha256),
    mediaType: text,
    digest,
    size: number,
    diffId: digest,
    createdAt: timestamp,
  }),
  /** By SHA-256. */
  texts: section(sha256, 20_000, unbounded, { text }),
  /** Archives of cache mounts, by `cacheKeyOf`. The one used last is the newest. */
  mounts: section(sha256, 200, unbounded, { id: text, mediaType: text, digest, size: number }),
  /** Facts about files of an image, by ChainID and key; see store/image-metadata.ts. */
  facts: section(text, 10_000, 4 * 1024 * 1024, { answer: text }),
};

export type SectionName = keyof typeof sections;
export type ScopeEntry<Name extends SectionName> = EntryOf<(typeof sections)[Name]["fields"]>;

/** The contents of a scope: a value that is read, merged and written as a whole. */
export type ScopeIndex = { readonly [Name in SectionName]: Map<string, ScopeEntry<Name>> };

export const sectionNames = Object.keys(sections) as SectionName[];

export function emptyIndex(): ScopeIndex {
  return {
    layers: new Map(),
    copies: new Map(),
    contents: new Map(),
    steps: new Map(),
    images: new Map(),
    chains: new Map(),
    texts: new Map(),
    mounts: new Map(),
    facts: new Map(),
  };
}

/** Returns all entries of both. */
export function mergeIndexes(one: ScopeIndex, other: ScopeIndex): ScopeIndex {
  const merged = emptyIndex();
  for (const name of sectionNames) {
    addTo(merged[name], one[name]);
    addTo(merged[name], other[name]);
  }
  return merged;
}

type AnyEntry = ScopeEntry<SectionName>;

function addTo(entries: Map<string, AnyEntry>, additions: ReadonlyMap<string, AnyEntry>): void {
  for (const [key, added] of additions) {
    const known = entries.get(key);
    entries.set(key, known === undefined ? added : newerOf(known, added));
  }
}

/**
 * Returns the newer of two entries. For different images, that is the layer made later: with --no-cache a step is run again, with
 * another result. For the same image, the entry of the machine that made it has the best data.
 */
function newerOf(one: AnyEntry, other: AnyEntry): AnyEntry {
  const usedAt = Math.max(one.usedAt, other.usedAt);
  return { ...(rank(one, other) < 0 ? other : one), usedAt };
}

function rank(one: AnyEntry, other: AnyEntry): number {
  if (!("madeAt" in one && "madeAt" in other)) return one.usedAt - other.usedAt;
  if (one.image !== other.image)
    return one.madeAt - other.madeAt || Number(one.image > other.image) - Number(one.image < other.image);
  return Number(one.by !== null) - Number(other.by !== null) || other.madeAt - one.madeAt;
}

/** The age at which unused entries are dropped. */
const maxAgeMilliseconds = 90 * 24 * 3600 * 1000;

/** Drops entries that are too old or too many, the least recently used first, and those of images that are `gone`. */
export function pruneIndex(index: ScopeIndex, now: number, gone: ReadonlySet<string>): ScopeIndex {
  const pruned = emptyIndex();
  for (const name of sectionNames) prune(name, index[name], pruned[name], now);
  for (const [hash, { image }] of pruned.layers) if (gone.has(image)) pruned.layers.delete(hash);
  for (const [hash, { layer }] of pruned.copies) if (!pruned.layers.has(layer)) pruned.copies.delete(hash);
  return pruned;
}

function prune(
  name: SectionName,
  entries: ReadonlyMap<string, AnyEntry>,
  kept: Map<string, AnyEntry>,
  now: number,
): void {
  const { maxEntries, maxCharacters } = sections[name];
  const isBounded = entries.size > maxEntries || maxCharacters !== unbounded;
  const newestFirst = isBounded
    ? [...entries].sort(([, one], [, other]) => other.usedAt - one.usedAt)
    : entries;
  let characters = 0;
  for (const [key, entry] of newestFirst) {
    if (kept.size === maxEntries) break;
    if (entry.usedAt < now - maxAgeMilliseconds) continue;
    if (maxCharacters !== unbounded) characters += JSON.stringify([key, entry]).length;
    if (characters > maxCharacters) break;
    // An entry with a time in the future, from a wrong clock, must not stay forever.
    kept.set(key, entry.usedAt > now ? { ...entry, usedAt: now } : entry);
  }
}

function section<Of extends EntryFields>(
  key: Field<string>,
  maxEntries: number,
  maxCharacters: number,
  fields: Of,
): Section<Of> {
  return { key, maxEntries, maxCharacters, fields: { ...fields, usedAt } };
}

export function formatLayers(count: number): string {
  return count === 1 ? "1 layer" : `${count} layers`;
}
