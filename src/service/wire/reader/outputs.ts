/** Output in answers, in any of the forms that services return it in. */
import { asInteger, asRecord, asText, type JsonRecord } from "../../http/json.ts";
import { bytesOf, type WireBytes } from "../operation.ts";
import { stageOf } from "./status.ts";
import { errors, names, outputs, requests } from "./vocabulary.ts";
import { leavesOf } from "./walk.ts";
import { hasAny, hasOnly, wordsOf } from "./words.ts";

type StreamName = "stdout" | "stderr";

/**
 * Returns a stream of a record, as far as it can be read. Output that a service does not split into two streams counts as standard
 * output.
 */
export function outputIn(body: unknown, stream: StreamName): WireBytes | undefined {
  const found = findField(body, (key) => key.includes(stream) && hasOnly(key, keyWords));
  const own = found && readBytes(found, stream);
  if (own !== undefined) return own;
  const mixed = findField(body, (key) => hasOnly(key, mixedWords));
  if (mixed === undefined) return undefined;
  const isDivided = findField(body, (key) => key.includes("stderr")) !== undefined;
  return isDivided ? undefined : readBytes(mixed, stream);
}

const keyWords: ReadonlySet<string> = new Set([
  ...[
    "stdout",
    "stderr",
    "text",
    "data",
    "content",
    "base64",
    "b64",
    "encoded",
    "lines",
    "chunks",
    "raw",
    "tail",
  ],
  ...outputs,
]);
const mixedWords: ReadonlySet<string> = new Set([
  "output",
  "outputs",
  "log",
  "logs",
  "console",
  "chunks",
  "lines",
  "tty",
  "combined",
]);

interface Field {
  key: readonly string[];
  value: unknown;
}

const maxDepth = 6;

/** Returns the outermost field with such a key that holds output. */
function findField(body: unknown, isWanted: (key: readonly string[]) => boolean): Field | undefined {
  let level: JsonRecord[] = [asRecord(Array.isArray(body) ? body[0] : body) ?? []].flat();
  for (let depth = 0; level.length > 0 && depth < maxDepth; depth++) {
    const fields = level
      .flatMap((record) => Object.entries(record))
      .map(([name, value]): Field => ({ key: wordsOf(name), value }))
      .filter(({ key }) => !hasAny(key, requests));
    const found = fields.find(({ key, value }) => isWanted(key) && isOutput(value));
    if (found !== undefined) return found;
    level = fields.flatMap(({ value }) => (Array.isArray(value) ? value : [value]).flatMap(recordsOf));
  }
  return undefined;
}

function recordsOf(value: unknown): JsonRecord[] {
  const record = asRecord(value);
  return record === undefined ? [] : [record];
}

/** An address of output is none. */
function isOutput(value: unknown): boolean {
  if (typeof value === "string") return !/^(https?:\/\/|\/)\S+$/.test(value);
  if (Array.isArray(value)) return value.length === 0 || value.every((item) => textOf(item) !== undefined);
  const record = asRecord(value);
  return record !== undefined && contentIn(record) !== undefined;
}

function readBytes({ key, value }: Field, stream: StreamName): WireBytes | undefined {
  if (Array.isArray(value)) return readParts(key, value, stream);
  if (stream === "stderr" && !key.includes("stderr")) return undefined;
  if (typeof value === "string") {
    const isEncoded = key.includes("base64") || key.includes("b64");
    return { value, encoding: isEncoded ? "base64" : "ascii" };
  }
  const record = asRecord(value);
  return record && bytesIn(record);
}

function bytesIn(record: JsonRecord): WireBytes | undefined {
  const text = contentIn(record);
  if (text === undefined) return undefined;
  const marked = record.base64 === true || record.is_base64 === true;
  const encoding = asText(record.encoding) ?? (marked ? "base64" : "ascii");
  return { value: text, encoding, truncated: record.truncated === true };
}

function contentIn(record: JsonRecord): string | undefined {
  for (const name of [
    "value",
    "data",
    "content",
    "text",
    "chunk",
    "line",
    "message",
    "msg",
    "output",
    "bytes",
  ])
    if (typeof record[name] === "string") return record[name];
  return undefined;
}

/**
 * Parts of output, one after the other. They are lines only if none of them ends one: a service that sends chunks leaves the line ends
 * where they are.
 */
function readParts(
  key: readonly string[],
  items: readonly unknown[],
  stream: StreamName,
): WireBytes | undefined {
  const own = items.filter((item) => streamOf(item, key) === stream);
  const texts = own.map((item) => textOf(item) ?? "");
  const isChunked = key.includes("chunks") || own.some(isChunk) || texts.some((text) => text.includes("\n"));
  const value = texts.map((text) => (isChunked ? text : `${text}\n`)).join("");
  return stream === "stderr" && value === "" && !key.includes("stderr")
    ? undefined
    : { value, encoding: "utf-8" };
}

function isChunk(item: unknown): boolean {
  const record = asRecord(item);
  return (
    record !== undefined &&
    ["chunk", "data", "bytes", "encoding", "base64", "seq", "offset"].some((name) => name in record)
  );
}

function textOf(item: unknown): string | undefined {
  if (typeof item === "string") return item;
  const record = asRecord(item);
  const bytes = record && bytesIn(record);
  return bytes && new TextDecoder().decode(bytesOf(bytes));
}

/** Each part may name its stream, in a word or as a descriptor. */
function streamOf(item: unknown, key: readonly string[]): StreamName {
  const record = asRecord(item);
  for (const value of record === undefined ? [] : Object.values(record))
    if (value === "stderr" || value === "stdout") return value;
  if (asInteger(record?.fd) === 2) return "stderr";
  return key.includes("stderr") ? "stderr" : "stdout";
}

/** Returns the path of text that looks like output, in a place where bough does not know any; `undefined` if there is none. */
export function unreadOutputIn(body: unknown): string | undefined {
  const leaf = leavesOf(body).find(({ key, value }) => {
    if (typeof value !== "string" || value.trim() === "" || hasAny(key, errors)) return false;
    if (hasAny(key, outputs)) return true;
    return !hasAny(key, names) && value.includes("\n") && stageOf(value) === undefined;
  });
  return leaf?.path;
}
