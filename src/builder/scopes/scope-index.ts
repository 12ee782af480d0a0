import { type EntryOf, type Field, type Fields, id, number, orNull, sha256, text } from "./entry-fields.ts";

/** When something was last used, in milliseconds since the epoch: every entry has it. */
const usedAt: Field<number> = number;

/** How an index is divided: what the entries of each part have beside their key, how many there are, and characters of all. */
interface Section<Of extends Fields> {
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
    madeAt: number,
    bytes: orNull(number),
    seconds: orNull(number),
    by: orNull(text),
  }),
  /** Layers by the hash of all that a COPY between images is made from; see store/copy-layers.ts. */
  copies: section(sha256, 10_000, unbounded, { place: sha256, source: id, layer: sha256 }),
  /** Contents by image and words: what the sources of such a copy come to there, as JSON. See store/copies.ts. */
  contents: section(text, 1000, 4 * 1024 * 1024, { sources: text }),
  /** Downloads by URL. */
  urls: section(text, 10_000, 1024 * 1024, {
    etag: orNull(text),
    lastModified: orNull(text),
    contentMd5: orNull(text),
    sha256,
    size: number,
  }),
  /** Answers by image and question. */
  facts: section(text, 10_000, 1024 * 1024, { answer: text }),
  /** Inputs by Dockerfile and instruction: what the step was made from, for `--explain`. They have a file of their own. */
  steps: section(text, 1000, 4 * 1024 * 1024, { ordinal: number, hash: sha256, title: text, inputs: text }),
};

export type SectionName = keyof typeof sections;
export type Entry<Name extends SectionName> = EntryOf<(typeof sections)[Name]["fields"]>;

/** What is known of a scope: a value that is read, merged and written as a whole. */
export type ScopeIndex = { readonly [Name in SectionName]: Map<string, Entry<Name>> };

export const sectionNames = Object.keys(sections) as SectionName[];

export function emptyIndex(): ScopeIndex {
  return {
    layers: new Map(),
    copies: new Map(),
    contents: new Map(),
    urls: new Map(),
    facts: new Map(),
    steps: new Map(),
  };
}

/** The entries of both: nothing that only one of them has is lost. */
export function mergeIndexes(one: ScopeIndex, other: ScopeIndex): ScopeIndex {
  const merged = emptyIndex();
  for (const name of sectionNames) {
    addTo(merged[name], one[name]);
    addTo(merged[name], other[name]);
  }
  return merged;
}

type AnyEntry = Entry<SectionName>;

function addTo(entries: Map<string, AnyEntry>, additions: ReadonlyMap<string, AnyEntry>): void {
  for (const [key, added] of additions) {
    const known = entries.get(key);
    entries.set(key, known === undefined ? added : newerOf(known, added));
  }
}

/**
 * The newer of two entries. A layer made later counts: with --no-cache a step is run again, for another result. Of an image that
 * two machines tell of, the machine that made it knows best.
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

/** Entries that nobody has used for so long go. */
const maxAgeMilliseconds = 90 * 24 * 3600 * 1000;

/** Drops what is too old or too much, the least recently used first, and what is said of images that are `gone`. */
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
    // A clock that was ahead must not keep an entry for good.
    kept.set(key, entry.usedAt > now ? { ...entry, usedAt: now } : entry);
  }
}

function section<Of extends Fields>(
  key: Field<string>,
  maxEntries: number,
  maxCharacters: number,
  fields: Of,
): Section<Of> {
  return { key, maxEntries, maxCharacters, fields: { ...fields, usedAt } };
}
