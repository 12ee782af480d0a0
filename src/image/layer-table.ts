/**
 * Tables of contents that some layers have in their blobs: the headers of all entries, which are read without the contents.
 * https://github.com/containers/storage/blob/main/docs/containers-storage-zstd-chunked.md
 */
import { BoughError } from "../errors.ts";
import { inOneChunk, readAtMost } from "../streams.ts";
import { decompress } from "./compression.ts";
import { digestOf, isDigest } from "./digest.ts";
import type { TarEntry } from "./tar-reader.ts";

/** The position of a layer's table of contents in its blob. */
export interface LayerTable {
  start: number;
  size: number;
  /** The size of the decompressed table. */
  rawSize: number;
  /** The digest of the table as it is in the blob. */
  digest: string;
}

/** More than the tables of layers with hundreds of thousands of files. */
const maxTableBytes = 64 * 1024 * 1024;
/** The annotations of `zstd:chunked`, today's and that of earlier versions. */
const prefixes = ["io.github.containers.zstd-chunked", "io.containers.zstd-chunked"];
/** The only type of table. */
const tableType = "1";

/** Finds the table of a layer by the annotations that the image's manifest has for it. Returns `undefined` if it has none. */
export function findTable(annotations: unknown, blobSize: number): LayerTable | undefined {
  for (const prefix of prefixes) {
    const digest = fieldOf(annotations, `${prefix}.manifest-checksum`);
    const position = asText(fieldOf(annotations, `${prefix}.manifest-position`)) ?? "";
    const [, start, size, rawSize, type] = /^(\d{1,15}):(\d{1,15}):(\d{1,15}):(\d)$/.exec(position) ?? [];
    if (!isDigest(digest) || type !== tableType) continue;
    const table = { start: Number(start), size: Number(size), rawSize: Number(rawSize), digest };
    const isInside = table.size > 0 && table.start + table.size <= blobSize;
    if (isInside && Math.max(table.size, table.rawSize) <= maxTableBytes) return table;
  }
  return undefined;
}

/** Returns the entries in a table, in the archive's order; files are empty. Throws if it is damaged. `name` is the layer's in messages. */
export async function readTable(bytes: Uint8Array, table: LayerTable, name: string): Promise<TarEntry[]> {
  const listed = digestOf(bytes) === table.digest ? fieldOf(await parse(bytes, table), "entries") : undefined;
  if (!Array.isArray(listed)) throw damaged(name);
  return listed.flatMap((value: unknown): TarEntry[] => {
    // A chunk is a further part of the content of a file that was listed before.
    if (fieldOf(value, "type") === "chunk") return [];
    const entry = readEntry(value);
    if (entry === undefined) throw damaged(name);
    return [entry];
  });
}

async function parse(bytes: Uint8Array, { rawSize }: LayerTable): Promise<unknown> {
  try {
    // A damaged table may decompress to far more than the size that it states.
    const { bytes: plain } = await readAtMost(rawSize, decompress(inOneChunk(bytes), "zstd", "a table"));
    return JSON.parse(plain.toString());
  } catch {
    return undefined;
  }
}

function damaged(name: string): BoughError {
  return new BoughError(`${name} has a damaged table of contents`);
}

const kinds: Readonly<Record<string, Pick<TarEntry, "type" | "flag" | "isDevice">>> = {
  reg: { type: "file", flag: "0", isDevice: false },
  hardlink: { type: "hardlink", flag: "1", isDevice: false },
  symlink: { type: "symlink", flag: "2", isDevice: false },
  char: { type: "other", flag: "3", isDevice: true },
  block: { type: "other", flag: "4", isDevice: true },
  dir: { type: "directory", flag: "5", isDevice: false },
  fifo: { type: "other", flag: "6", isDevice: false },
};

function readEntry(value: unknown): TarEntry | undefined {
  const field = (name: string) => fieldOf(value, name);
  const kind = kinds[asText(field("type")) ?? ""];
  const [name, target] = [asBytes(field("name")), asBytes(field("linkName") ?? "")];
  const modified = asSeconds(field("modtime"));
  const attributes = readAttributes(field("xattrs"));
  const numbers = ["mode", "uid", "gid", "devMajor", "devMinor"].map((each) => field(each) ?? 0);
  const [mode = 0, uid = 0, gid = 0, major = 0, minor = 0] = numbers.filter(isCount);
  if (
    kind === undefined ||
    name === undefined ||
    target === undefined ||
    numbers.some((each) => !isCount(each))
  )
    return undefined;
  if (modified === undefined || attributes === undefined) return undefined;
  const owner = { mode: mode & 0o7777, uid, gid };
  const content = { size: 0, start: 0, offset: 0, isSparse: false, pieces: noPieces };
  return { ...kind, name, target, ...owner, modified, major, minor, attributes, ...content };
}

async function* noPieces(): AsyncGenerator<never> {}

/** Returns a name as `readLayerTar` decodes it, as latin1. Returns `undefined` if it is not UTF-8, since JSON has then lost bytes of it. */
function asBytes(value: unknown): string | undefined {
  const text = asText(value);
  if (text === undefined || text.includes("\uFFFD")) return undefined;
  return Buffer.from(text).toString("latin1");
}

/** Reads a time such as `2026-11-28T05:41:02.5Z`, as seconds. JavaScript's dates would lose microseconds. */
function asSeconds(value: unknown): number | undefined {
  if (value === undefined) return 0;
  const [, whole, fraction = "", zone = ""] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$/.exec(asText(value) ?? "") ?? [];
  const seconds = Date.parse(`${whole}${zone}`) / 1000;
  if (Number.isNaN(seconds)) return undefined;
  return seconds < 0 ? seconds + Number(`0${fraction}`) : Number(`${seconds}${fraction}`);
}

function readAttributes(value: unknown): TarEntry["attributes"] | undefined {
  const attributes = Object.entries(isRecord(value) ? value : {}).map(([name, content]) => ({
    name: asBytes(name) ?? "",
    value: Buffer.from(asText(content) ?? "", "base64"),
  }));
  return attributes.some(({ name }) => name === "") ? undefined : attributes;
}

function fieldOf(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function asText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
