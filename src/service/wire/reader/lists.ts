/** Lists in answers, and the tags of listed images. */
import { asRecord, asText, type JsonRecord } from "../../http/json.ts";
import { errors } from "./vocabulary.ts";
import { hasAny, wordsOf } from "./words.ts";

const maxDepth = 3;

/**
 * Returns the items of a list; `undefined` if there is none: an array, or one below its own name, or below any other but that of errors.
 * An empty one may be `null`.
 */
export function listIn(body: unknown, name: string): unknown[] | undefined {
  const record = asRecord(body);
  if (record !== undefined && fieldNamed(record, name) === null) return [];
  return arrayIn(body, name, 0);
}

function arrayIn(body: unknown, name: string, depth: number): unknown[] | undefined {
  if (Array.isArray(body)) return body.map(withoutNode);
  const record = asRecord(body);
  if (record === undefined || depth === maxDepth) return undefined;
  const own = fieldNamed(record, name);
  const others = Object.entries(record).filter(([key]) => !hasAny(wordsOf(key), errors));
  for (const value of [own, ...others.map(([, value]) => value)]) {
    const found = arrayIn(value, name, depth + 1);
    // A list of other things than objects is none of images.
    if (found !== undefined && (value === own || found.every((item) => asRecord(item) !== undefined)))
      return found;
  }
  return undefined;
}

/** Some lists put each item into an object of its own. */
function withoutNode(item: unknown): unknown {
  return asRecord(asRecord(item)?.node) ?? item;
}

function fieldNamed(record: JsonRecord, name: string): unknown {
  return record[name] ?? Object.entries(record).find(([key]) => key.toLowerCase() === name)?.[1];
}

/** Returns the tags of a listed image; `undefined` if its record says nothing about tags. */
export function tagsIn(record: JsonRecord): string[] | undefined {
  const fields = Object.entries(record).filter(([key]) => isTagKey(wordsOf(key)));
  const name = asText(fieldNamed(record, "name"));
  if (fields.length === 0 && name === undefined) return undefined;
  const own = fields.flatMap(([, value]) => readTags(value, name));
  return own.length > 0 || name === undefined ? [...new Set(own)] : [name];
}

/** `tag`, `tags`, `RepoTags`, `reference`. */
export function isTagKey(key: readonly string[]): boolean {
  const last = key.at(-1) ?? "";
  return ["tag", "tags", "ref", "reference", "references"].includes(last);
}

function readTags(value: unknown, name: string | undefined): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => readTags(item, name));
  const record = asRecord(value);
  if (record !== undefined) {
    const own = asText(record.name) ?? name;
    const tags = readTags(record.tag, own);
    return tags.length > 0 || own === undefined ? tags : [own];
  }
  const tag = asText(value);
  if (tag === undefined) return [];
  return [name === undefined || /[:/]/.test(tag) || tag === name ? tag : `${name}:${tag}`];
}
