/** Reads output in any of the forms that services return it in. */
import { asRecord, asText, type JsonRecord } from "../../http/json.ts";
import { bytesOf, type WireBytes } from "../operation.ts";
import { fieldOf, findAll, hasField, objectIn, placesIn, readId } from "./fields.ts";
import { listWrappers, mixedOutputKeys, newOperation, operationLink, outputPlaces } from "./tables.ts";

/**
 * Returns a stream of a record, as far as it can be read. Output that a service does not split into two streams counts as
 * standard output.
 */
export function outputIn(body: unknown, stream: "stdout" | "stderr"): WireBytes | undefined {
  const places = placesIn(body, outputPlaces);
  const found = firstOf(places, [stream]);
  if (found !== undefined || stream === "stderr") return found;
  return firstOf(places, ["stderr"]) === undefined ? firstOf(places, mixedOutputKeys) : undefined;
}

function firstOf(places: readonly JsonRecord[], names: readonly string[]): WireBytes | undefined {
  for (const place of places) {
    for (const name of names) {
      const bytes = readBytes(fieldOf(place, name));
      if (bytes !== undefined) return bytes;
    }
  }
  return undefined;
}

function readBytes(value: unknown): WireBytes | undefined {
  if (typeof value === "string") return { value, encoding: "ascii" };
  if (Array.isArray(value)) return readLines(value);
  const record = asRecord(value);
  if (record === undefined) return undefined;
  const text = contentIn(record);
  if (text === undefined) return undefined;
  const marked = record.base64 === true || record.is_base64 === true;
  const encoding = asText(record.encoding) ?? (marked ? "base64" : "ascii");
  return { value: text, encoding, truncated: record.truncated === true };
}

/** Each item is a line, with its line feed or without. */
function readLines(items: readonly unknown[]): WireBytes | undefined {
  const lines = items.map((item) => (typeof item === "string" ? item : textOf(item)));
  if (lines.some((line) => line === undefined)) return undefined;
  const text = lines.map((line) => (line?.endsWith("\n") ? line : `${line}\n`)).join("");
  return { value: text, encoding: "utf-8" };
}

function textOf(item: unknown): string | undefined {
  const bytes = readBytes(item);
  if (bytes !== undefined) return new TextDecoder().decode(bytesOf(bytes));
  const record = asRecord(item);
  return ["line", "message", "msg"].map((name) => record?.[name]).find((text) => typeof text === "string") as
    | string
    | undefined;
}

function contentIn(record: JsonRecord): string | undefined {
  for (const name of ["value", "data", "content", "text"])
    if (typeof record[name] === "string") return record[name];
  return undefined;
}

/** Reads the response to a request that starts an operation. */

/** Returns the ids that may be the operation's, the likely ones first. */
export function operationIdsIn(body: unknown): string[] {
  if (typeof body === "string") return [readId(body) ?? []].flat();
  return findAll(body, newOperation, readId);
}

/** Returns the addresses in a response that may be those of the operation's record. */
export function operationLinksIn(body: unknown): string[] {
  return findAll(body, operationLink, readLink);
}

function readLink(value: unknown): string | undefined {
  const text = asText(value) ?? asText((objectIn(value) as JsonRecord | undefined)?.href);
  return text !== undefined && /^(https?:\/\/|\/)/.test(text) ? text : undefined;
}

/** Reads lists: an array, or one below its own name or a usual one. */

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
