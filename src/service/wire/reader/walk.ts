/** The values of an answer, each with what its key and the objects around it say. */
import { asRecord, asText, type JsonRecord } from "../../http/json.ts";
import { ids, measures, pasts, requests, statusKeys, tries } from "./vocabulary.ts";
import { hasAny, wordsOf } from "./words.ts";

/** A value of an answer. Of a list, each item is a value of the list's key. */
export interface Leaf {
  /** Keys joined by dots, as in the answer. */
  path: string;
  /** The words of its key, or of the value beside it that says what it is. */
  key: readonly string[];
  /** The words of the keys of the objects that it is in, the outermost first. */
  around: readonly (readonly string[])[];
  /** The words of the value that names its object; none if no value does. */
  named: readonly string[];
  /** True if the key is that name: `{"type": "Failed", "status": "True"}`. */
  isNamed: boolean;
  /** 0 for the answer's own. */
  depth: number;
  value: unknown;
  /** True for an item of a list. */
  isItem: boolean;
  /** True for what was before, such as an entry of a history. */
  isPast: boolean;
}

/** Larger answers have lists or output, of which the beginning says enough. */
const maxLeaves = 5000;
const mostLevels = 8;

interface WalkOptions {
  /** True to include what was asked for, which a service may repeat in its answer, and amounts. */
  isWhole?: boolean;
  /** The number of levels: 1 for the answer's own values. Default: as many as answers have. */
  maxDepth?: number;
}

/** Returns the values and objects of an answer, the outermost first. */
export function leavesOf(
  body: unknown,
  { isWhole = false, maxDepth = mostLevels }: WalkOptions = {},
): Leaf[] {
  const found: Leaf[] = [];
  /** Breadth first. */
  let level: OpenRecord[] = [placeOf(body)].flat();
  for (let depth = 0; level.length > 0 && depth < maxDepth && found.length < maxLeaves; depth++) {
    const next: OpenRecord[] = [];
    for (const place of level) visit({ ...place, isWhole }, depth, found, next);
    level = next;
  }
  return found;
}

interface OpenRecord extends Pick<Leaf, "path" | "around" | "isPast"> {
  record: JsonRecord;
}

function placeOf(body: unknown): OpenRecord[] {
  const record = asRecord(Array.isArray(body) ? body[0] : body);
  return record === undefined ? [] : [{ path: "", around: [], isPast: false, record }];
}

function visit(
  { path, around, isPast, record, isWhole }: OpenRecord & { isWhole: boolean },
  depth: number,
  found: Leaf[],
  next: OpenRecord[],
): void {
  const named = nameIn(record);
  for (const [name, whole] of Object.entries(record)) {
    if (found.length >= maxLeaves) return;
    const own = wordsOf(name);
    const shown = path === "" ? name : `${path}.${name}`;
    const isItem = Array.isArray(whole);
    for (const value of itemsOf(own, whole)) {
      const inner = asRecord(value);
      if (!isWhole && isAsked(own, inner)) continue;
      // `{"name": "exit_code", "value": 3}` is a field like any other, and so is `{"type": "Failed", "status": "True"}`.
      const isNamed = named.length > 0 && (hasAny(own, values) || (hasAny(own, statusKeys) && isFlag(value)));
      const key = isNamed ? named : own;
      const past = isPast || hasAny(own, pasts);
      found.push({
        ...{ path: shown, key, around, named, isNamed, isItem, depth, value },
        isPast: past,
      });
      if (inner !== undefined)
        next.push({ path: shown, around: [...around, own], isPast: past, record: inner });
    }
  }
}

/** Returns the values of a key. In a list of tries, only the last one counts. */
function itemsOf(key: readonly string[], whole: unknown): readonly unknown[] {
  if (!Array.isArray(whole)) return [whole];
  return hasAny(key, tries) ? whole.slice(-1) : whole;
}

/** A command may be an object with its own state, and a request may have the id that an operation is known by. */
function isAsked(key: readonly string[], inner: JsonRecord | undefined): boolean {
  if (hasAny(key, measures)) return true;
  if (hasAny(key, ids) && inner === undefined) return false;
  if (key.length === 1 && key[0] === "command") return inner === undefined;
  return hasAny(key, requests);
}

const values: ReadonlySet<string> = new Set(["value", "data", "content"]);
const maxNameCharacters = 40;

/** Returns the words of the value that says what an object is about: `{"type": "Failed", "status": "True"}`. */
function nameIn(record: JsonRecord): readonly string[] {
  for (const name of ["type", "kind", "name", "stream", "key"]) {
    const text = asText(record[name]);
    if (text !== undefined && text.length <= maxNameCharacters && /^[\w .-]+$/.test(text))
      return wordsOf(text);
  }
  return [];
}

/** Returns what a value says that is true or false, also as text. */
export function flagIn(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (typeof value !== "string" || value.length > "false".length) return undefined;
  const text = value.toLowerCase();
  return text === "true" || text === "yes" ? true : text === "false" || text === "no" ? false : undefined;
}

function isFlag(value: unknown): boolean {
  return flagIn(value) !== undefined;
}
