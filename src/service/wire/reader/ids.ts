/** Ids in answers, the likely ones first: of operations, images and files. */
import { asId, asText } from "../../http/json.ts";
import {
  attributes,
  envelopes,
  ids,
  images,
  operationNouns,
  others,
  outputs,
  results,
  sources,
} from "./vocabulary.ts";
import { type Leaf, leavesOf } from "./walk.ts";
import { hasAny, hasOnly } from "./words.ts";

/** Reads an id: text, or a number. */
function readId(value: unknown): string | undefined {
  return asId(Number.isSafeInteger(value) ? String(value) : value);
}

/**
 * Returns the ids that may be the operation's in the answer to the request that started it. Its own name comes first, then an id alone,
 * then other names of what was started, then anything that looks like an id.
 */
export function operationIdsIn(body: unknown): string[] {
  if (typeof body === "string") return [readId(body) ?? []].flat();
  return ranked(leavesOf(body, { isWhole: true }).filter(isOfAnswer), rankOfOperation);
}

/** What else a service may give an id. */
const otherThings: ReadonlySet<string> = new Set([
  ...[images, sources, others].flatMap((set) => [...set]),
  ...[
    "file",
    "layer",
    "trace",
    "correlation",
    "span",
    "token",
    "version",
    "tag",
    "digest",
    "hash",
    "pid",
    "volume",
    "message",
  ],
]);

/** A list of ids does not say which of them is the operation's. */
function isOfAnswer({ key, around, isItem }: Leaf): boolean {
  return !isItem && ![key, ...around].some((words) => hasAny(words, otherThings));
}

/** Lower is likelier. */
function rankOfOperation({ key, around, depth, value }: Leaf): number | undefined {
  const isNoun = hasAny(key, operationNouns);
  const isId = hasAny(key, ids);
  const inner = around.at(-1) ?? [];
  const isIn = depth === 0 || hasAny(inner, envelopes) || hasAny(inner, operationNouns);
  if (isAboutOperation(key) && (isId || hasOnly(key, operationNouns))) return 0 + depth;
  if (isId && isAboutOperation(inner)) return 1 + depth;
  // A name with the kind of thing before it.
  if (key.includes("name") && typeof value === "string" && /^[a-z]+\/[\w.-]+$/i.test(value)) return 2 + depth;
  if (hasOnly(key, ids) && isIn) return (key.includes("uuid") ? 2 : 3) + depth;
  if (isNoun && (isId || hasOnly(key, operationNouns))) return 6 + depth;
  if (isId && isIn) return 9 + depth;
  if (depth <= 1 && hasOnly(key, envelopes)) return 12 + depth;
  return depth <= 2 && looksLikeId(value) ? 15 + depth : undefined;
}

/** Returns what a service calls operations, as in `job_id` and `{"task": {...}}`. */
export function operationNounsIn(body: unknown): string[] {
  const keys = leavesOf(body, { isWhole: true }).flatMap(({ key, depth }) => (depth <= 2 ? key : []));
  return [...new Set(keys.filter((word) => operationNouns.has(word) && !usualNouns.has(word)))];
}

/** Those that are asked for in any case, or are no names of a collection. */
const usualNouns: ReadonlySet<string> = new Set([
  "operation",
  "op",
  "instance",
  "command",
  "process",
  "work",
]);

function isAboutOperation(key: readonly string[]): boolean {
  return key.includes("operation") || key.includes("op");
}

/** Digits and no words: no status, no time, no text. */
function looksLikeId(value: unknown): boolean {
  const text = asText(value);
  if (text === undefined || text.length > 64 || /^\d{4}-\d\d-\d\d/.test(text) || /[/:]/.test(text))
    return false;
  return /\d/.test(text) && /^[\w.-]+$/.test(text);
}

function ranked(leaves: readonly Leaf[], rankOf: (leaf: Leaf) => number | undefined): string[] {
  const found = leaves.flatMap((leaf) => {
    const id = typeof leaf.value === "boolean" ? undefined : readId(leaf.value);
    const rank = id === undefined ? undefined : rankOf(leaf);
    return id === undefined || rank === undefined ? [] : [{ id, rank }];
  });
  return [...new Set(found.toSorted((one, other) => one.rank - other.rank).map(({ id }) => id))];
}

/** Ids in a record that may be the image that an operation has made, the likely ones first. */
export interface ImageCandidates {
  /** Named as a result. It may be the image that the operation started from, if that was not changed. */
  results: readonly string[];
  /** Named only as an image, which may be the one that the operation started from. */
  others: readonly string[];
}

export function imagesIn(body: unknown, operation: string | undefined): ImageCandidates {
  const leaves = leavesOf(body).filter(
    ({ isPast, key, around }) => !isPast && ![key, ...around].some(isSource),
  );
  const isMade = ({ key, around }: Leaf) => [key, ...around].some((words) => hasAny(words, madeWords));
  const named = leaves.filter((leaf) => rankOfImage(leaf) !== undefined);
  const made = ranked(named.filter(isMade), rankOfImage);
  // A service that has a key for the result and leaves it empty says that there is none.
  const isEmpty = leaves.some((leaf) => leaf.value === null && hasAny(leaf.key, images) && isMade(leaf));
  if (made.length > 0 || isEmpty) return { results: made, others: [] };
  const bare = ranked(leaves, rankOfBare).filter((id) => id !== operation);
  return { results: bare, others: ranked(named, rankOfImage) };
}

function isSource(words: readonly string[]): boolean {
  return hasAny(words, sources);
}

const madeWords: ReadonlySet<string> = new Set([...results, "data", "response", "snapshot"]);

/** `image`, `image_id`, and the id of an image. */
function rankOfImage({ key, around, named }: Leaf): number | undefined {
  const [outer = [], own = []] = [undefined, ...around].slice(-2);
  const inner = hasAny(named, images) ? named : hasOnly(own, envelopes) ? outer : own;
  if (hasAny(key, images)) {
    const isAttribute = hasAny(key, attributes);
    return isAttribute ? undefined : (key.includes("uuid") ? 0 : 1) + around.length;
  }
  if (!hasAny(inner, images) || hasAny(inner, attributes) || !hasOnly(key, ids)) return undefined;
  return (key.includes("uuid") ? 0 : 1) + around.length;
}

/** The id of a result that is nothing but an image: `{"result": {"id": ...}}`, `{"result": "<uuid>"}`. */
function rankOfBare({ key, around, depth, value }: Leaf): number | undefined {
  if (depth === 1 && hasOnly(key, ids) && hasOnly(around[0] ?? [], bareWords))
    return key.includes("uuid") ? 0 : 1;
  return depth === 0 && hasOnly(key, bareWords) && isUuidText(value) ? 2 : undefined;
}

const bareWords: ReadonlySet<string> = new Set(["result", "output", "data", "response", "artifact"]);

function isUuidText(value: unknown): boolean {
  return typeof value === "string" && /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i.test(value);
}

/** Returns the ids under an image's names in the response to an import. */
export function importedImagesIn(body: unknown): string[] {
  return ranked(
    leavesOf(body).filter(({ key, around }) => ![key, ...around].some(isSource)),
    rankOfImage,
  );
}

/** Returns the id of an image in a list, or of an image's own record. */
export function imageIdIn(record: unknown): string | undefined {
  const own = leavesOf(record, { isWhole: true, maxDepth: 1 });
  return ranked(own, ({ key }) => {
    if (hasOnly(key, ids)) return key.includes("uuid") ? 0 : 1;
    return hasAny(key, images) && !hasAny(key, attributes) && !hasAny(key, sources) ? 2 : undefined;
  })[0];
}

/** Returns the id of a stored file: in an object, the first of an array, or text that is nothing else. */
export function fileIdIn(body: unknown): string | undefined {
  const first: unknown = Array.isArray(body) ? body[0] : body;
  if (typeof first === "string") return readId(first);
  return ranked(leavesOf(body, { isWhole: true }), ({ key, depth }) => {
    if (hasAny(key, outputs) || hasAny(key, sizes) || depth > 2) return undefined;
    if (hasOnly(key, fileIds)) {
      const isNamed = key.includes("file") || key.includes("blob");
      return (key.includes("uuid") ? 0 : hasAny(key, ids) ? (isNamed ? 1 : 2) : 3) + 10 * depth;
    }
    return hasAny(key, hashes) ? 5 + 10 * depth : undefined;
  })[0];
}

const fileIds: ReadonlySet<string> = new Set([...ids, "file", "blob", "object", "upload"]);
const hashes: ReadonlySet<string> = new Set(["sha256", "sha", "hash", "digest", "checksum", "name"]);
const sizes: ReadonlySet<string> = new Set(["size", "bytes", "length"]);

/** Returns the SHA-256 in the record of a file, whatever its key. */
export function fileHashIn(body: unknown): string | undefined {
  for (const { value } of leavesOf(body, { isWhole: true })) {
    const text = asText(value)
      ?.toLowerCase()
      .replace(/^sha256:/, "");
    if (text !== undefined && /^[0-9a-f]{64}$/.test(text)) return text;
  }
  return undefined;
}
