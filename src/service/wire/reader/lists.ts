/** Reads lists: an array, or one below its own name or a usual one. */
import { asRecord } from "../../http/json.ts";
import { fieldOf, hasField } from "./fields.ts";
import { listWrappers } from "./tables.ts";

const maxDepth = 3;

/** Returns the items of a list; `undefined` if there is none. An empty one may be `null`. */
export function listIn(body: unknown, name: string, depth = 0): unknown[] | undefined {
  if (Array.isArray(body)) return body;
  const record = asRecord(body);
  if (record === undefined || depth === maxDepth) return undefined;
  if (depth === 0 && hasField(record, name) && fieldOf(record, name) === null) return [];
  for (const key of [name, ...listWrappers]) {
    const found = listIn(fieldOf(record, key), name, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}
