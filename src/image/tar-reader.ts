/** Reading a tar archive while it arrives: one entry after the other, none of them held in memory. */
import { BoughError } from "../errors.ts";
import {
  blockBytes,
  decode,
  isZeroBlock,
  parseHeader,
  parsePaxRecords,
  type TarHeader,
  withPaxRecords,
} from "./tar-header.ts";
import { createTarSource, EndOfStreamError, type TarSource } from "./tar-source.ts";

export interface TarEntry {
  /** As the archive has it: whoever writes files by it has to check it. */
  name: string;
  type: "file" | "directory" | "symlink" | "hardlink" | "other";
  /** Permission bits, 0 to 0o7777. */
  mode: number;
  /** Of a file, holes included. */
  size: number;
  /** How many bytes of the archive come before the content. */
  offset: number;
  /** Whether the content is stored without its holes. */
  isSparse: boolean;
  /** Seconds since the epoch. */
  modified: number;
  /** What a link leads to. */
  target: string;
  /** A file's content, to be read before the next entry is asked for; what is between the pieces is a hole. */
  pieces(): AsyncGenerator<TarPiece>;
}

export interface TarPiece {
  offset: number;
  bytes: Uint8Array;
}

const types: Record<string, TarEntry["type"]> = {
  "0": "file",
  "7": "file",
  "1": "hardlink",
  "2": "symlink",
  "5": "directory",
};

/** Rejects where the archive is damaged, or ends before its end; `archive` names it in the message. */
export async function* readTar(
  stream: AsyncIterable<Uint8Array>,
  archive = "the archive from the service",
): AsyncGenerator<TarEntry> {
  try {
    yield* readEntries(stream);
  } catch (error) {
    throw error instanceof DamageError ? new BoughError(`${archive} is damaged: ${error.message}`) : error;
  }
}

/** How an archive is damaged. */
class DamageError extends Error {
  override readonly name = "DamageError";
}

async function* readEntries(stream: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const source = createTarSource(stream);
  const global = new Map<string, string>();
  let own = new Map<string, string>();
  for (;;) {
    const block = await source.take(blockBytes);
    if (block === undefined) throw damaged("it ends too early");
    if (isZeroBlock(block)) return;
    const raw = parseHeader(block);
    if (raw === undefined) throw damaged("a header's checksum is wrong");
    if ("xgLK".includes(raw.flag)) {
      const content = await takePadded(source, raw.size);
      if (raw.flag === "g") for (const [key, value] of parsePaxRecords(content)) global.set(key, value);
      else if (raw.flag === "x") own = parsePaxRecords(content);
      else own.set(raw.flag === "L" ? "path" : "linkpath", decode(content));
      continue;
    }
    const records = new Map([...global, ...own]);
    own = new Map();
    const header = withPaxRecords(raw, records);
    const content = createContent(source, header, records);
    const { size, isSparse, pieces } = content;
    yield { ...describe(header), offset: source.position(), size, isSparse, pieces };
    await content.skip();
  }
}

function describe(header: TarHeader): Omit<TarEntry, "size" | "offset" | "isSparse" | "pieces"> {
  const { name, flag, mode, modified, linkName } = header;
  if (flag === "S") throw damaged(`${name} is sparse in a format that bough does not know`);
  // Before there was a type for directories, a slash at the end of the name said so.
  const type = flag === "0" && name.endsWith("/") ? "directory" : (types[flag] ?? "other");
  return { name, type, mode, modified, target: linkName };
}

function createContent(source: TarSource, { flag, size }: TarHeader, records: ReadonlyMap<string, string>) {
  // Links and directories may carry a size that stands for nothing.
  const stored = "1256".includes(flag) ? 0 : size;
  const isSparse = records.get("GNU.sparse.major") === "1";
  let left = stored + padding(stored);
  async function* raw(length: number): AsyncGenerator<Uint8Array> {
    for await (const part of fromStart(source.pass(length))) {
      left -= part.byteLength;
      yield part;
    }
  }
  async function* pieces(): AsyncGenerator<TarPiece> {
    if (isSparse) {
      const { extents, bytes } = await readSparseMap(raw, stored);
      let read = bytes;
      for (const { offset, length } of extents) {
        let at = offset;
        for await (const part of raw(length)) {
          yield { offset: at, bytes: part };
          at += part.byteLength;
        }
        read += length;
      }
      if (read > stored) throw damaged("a sparse file's map does not fit it");
      return;
    }
    let offset = 0;
    for await (const bytes of raw(stored)) {
      yield { offset, bytes };
      offset += bytes.byteLength;
    }
  }
  return {
    size: isSparse ? Number(records.get("GNU.sparse.realsize") ?? 0) : stored,
    isSparse,
    pieces,
    async skip() {
      for await (const _ of raw(left));
    },
  };
}

/** GNU's sparse format 1.0: numbers on lines of their own, padded to whole blocks, before the data. */
async function readSparseMap(
  raw: (length: number) => AsyncGenerator<Uint8Array>,
  stored: number,
): Promise<{ extents: { offset: number; length: number }[]; bytes: number }> {
  let text = "";
  let bytes = 0;
  while (bytes < stored) {
    for await (const part of raw(blockBytes)) text += new TextDecoder("latin1").decode(part);
    bytes += blockBytes;
    const numbers = text.split("\n").slice(0, -1).map(Number);
    const count = numbers[0] ?? 0;
    if (numbers.length < 1 + count * 2 || numbers.length === 0) continue;
    const extents = Array.from({ length: count }, (_, index) => ({
      offset: numbers[1 + index * 2] ?? 0,
      length: numbers[2 + index * 2] ?? 0,
    }));
    return { extents, bytes };
  }
  throw damaged("a sparse file's map is missing");
}

async function takePadded(source: TarSource, size: number): Promise<Uint8Array> {
  if (size > 1024 * 1024) throw damaged("a header is larger than any should be");
  const content = await source.take(size + padding(size));
  if (content === undefined) throw damaged("it ends too early");
  return content.subarray(0, size);
}

async function* fromStart(parts: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* parts;
  } catch (error) {
    throw error instanceof EndOfStreamError ? damaged("it ends too early") : error;
  }
}

function padding(size: number): number {
  return (blockBytes - (size % blockBytes)) % blockBytes;
}

function damaged(how: string): DamageError {
  return new DamageError(how);
}
