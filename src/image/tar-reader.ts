/** Reads a tar archive as a stream: one entry after another, without holding their contents in memory. */
import { BoughError } from "../errors.ts";
import {
  attributesIn,
  blockBytes,
  type DecodeText,
  decode,
  decodeName,
  isZeroBlock,
  padding,
  parseHeader,
  parsePaxRecords,
  type TarHeader,
  withPaxRecords,
} from "./tar-header.ts";
import { type ByteSource, createTarSource, EndOfStreamError, type TarSource } from "./tar-source.ts";
import { extentsOf, readGnuSparse, type Sparse, sparseOf } from "./tar-sparse.ts";

/** An entry, with its content's size, holes included. Its name must be checked before a file is written by it. */
export interface TarEntry extends Omit<TarHeader, "linkName"> {
  type: "file" | "directory" | "symlink" | "hardlink" | "other";
  /** True for a block or character device, which has the type `other`. */
  isDevice: boolean;
  attributes: readonly { name: string; value: Buffer }[];
  /** The position of the entry's first header in the archive. */
  start: number;
  /** The position of the content. */
  offset: number;
  /** True if the content is stored without its holes. */
  isSparse: boolean;
  /** The target of a link. */
  target: string;
  /** A file's content, to be read before the next entry. Gaps between the pieces are holes. */
  pieces(): AsyncGenerator<TarPiece>;
}

interface TarPiece {
  offset: number;
  bytes: Uint8Array;
}

const types: Record<string, TarEntry["type"]> = {
  "0": "file",
  "7": "file",
  S: "file",
  "1": "hardlink",
  "2": "symlink",
  "5": "directory",
};

/** The maximum number of extended headers before an entry, which needs about three. */
const maxExtendedHeaders = 100;

/**
 * Reads the entries of an archive. Rejects if the archive is damaged or truncated; `archive` is its name in the message. Does not
 * read the stream beyond the archive's end.
 */
export function readTar(
  stream: ByteSource,
  archive = "the archive from the service",
): AsyncGenerator<TarEntry> {
  return readAs(stream, { text: decode, needsEnd: true, problem: `${archive} is damaged` });
}

/**
 * Reads the entries of a layer like `readTar`, but decodes names as latin1, since no byte may be lost, and accepts a missing end,
 * as some programs write it.
 */
export function readLayerTar(stream: ByteSource, layer: string): AsyncGenerator<TarEntry> {
  return readAs(stream, { text: decodeName, needsEnd: false, problem: `${layer} is not a layer` });
}

/** Reads the archive of an image's files like `readTar`, but decodes names as latin1, since no byte may be lost. */
export function readTreeTar(stream: ByteSource): AsyncGenerator<TarEntry> {
  return readAs(stream, {
    text: decodeName,
    needsEnd: true,
    problem: "the archive from the service is damaged",
  });
}

interface Style {
  text: DecodeText;
  /** True if an archive without an end is damaged, even if it stops between two entries. */
  needsEnd: boolean;
  /** The beginning of error messages. */
  problem: string;
}

async function* readAs(stream: ByteSource, style: Style): AsyncGenerator<TarEntry> {
  const source = createTarSource(stream);
  try {
    yield* readEntries(source, style);
  } finally {
    await source.close();
  }
}

/** Returns the error for an archive, from how it is damaged. */
type Damaged = (how: string) => BoughError;

async function* readEntries(source: TarSource, { text, needsEnd, problem }: Style): AsyncGenerator<TarEntry> {
  const damaged: Damaged = (how) => new BoughError(`${problem}: ${how}`);
  const takeBlock = async () => {
    const block = await source.take(blockBytes);
    if (block === undefined) throw damaged("it ends too early");
    return block;
  };
  const extended = createExtendedHeaders(text);
  let start = 0;
  for (;;) {
    if (extended.count === 0) start = source.position();
    const block = await source.take(blockBytes);
    if (block === undefined && !needsEnd && source.position() === start) return;
    if (block === undefined) throw damaged("it ends too early");
    if (isZeroBlock(block)) return;
    const raw = parseHeader(block, text);
    if (raw === undefined) throw damaged("a header's checksum is wrong");
    if ("xgLK".includes(raw.flag)) {
      if (extended.count >= maxExtendedHeaders)
        throw damaged("it has too many extended headers before an entry");
      if (raw.size < 0) throw damaged("a header has an invalid size");
      extended.add(raw.flag, await takePadded(source, raw.size, damaged));
      continue;
    }
    const records = extended.takeRecords();
    const header = withPaxRecords(raw, records);
    const sparse =
      raw.flag === "S" ? await readGnuSparse(block, takeBlock, damaged) : sparseOf(records, damaged);
    const content = createContent(source, header, sparse, damaged);
    const { size, isSparse, pieces } = content;
    const attributes = attributesIn(records);
    yield { ...describe(header), attributes, start, offset: source.position(), size, isSparse, pieces };
    await content.skip();
  }
}

/** The records of extended headers, which hold for the next entry or for all that follow. */
function createExtendedHeaders(text: DecodeText) {
  const global = new Map<string, string>();
  let own = new Map<string, string>();
  return {
    /** The number of extended headers since the last entry. */
    count: 0,
    add(flag: string, content: Uint8Array): void {
      this.count++;
      if (flag === "L" || flag === "K") own.set(flag === "L" ? "path" : "linkpath", text(content));
      else
        for (const [key, value] of parsePaxRecords(content, text))
          (flag === "g" ? global : own).set(key, value);
    },
    /** Returns the records of the next entry. */
    takeRecords(): Map<string, string> {
      const records = new Map([...global, ...own]);
      own = new Map();
      this.count = 0;
      return records;
    },
  };
}

function describe(
  header: TarHeader,
): Omit<TarEntry, "size" | "start" | "offset" | "isSparse" | "pieces" | "attributes"> {
  const { name, flag, mode, uid, gid, modified, linkName, major, minor } = header;
  // A trailing slash meant a directory before directories had a type flag.
  const type = flag === "0" && name.endsWith("/") ? "directory" : (types[flag] ?? "other");
  const isDevice = "34".includes(flag);
  return { name, type, flag, mode, uid, gid, isDevice, major, minor, modified, target: linkName };
}

function isSize(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function createContent(
  source: TarSource,
  { flag, size }: TarHeader,
  sparse: Sparse | undefined,
  damaged: Damaged,
) {
  // Links, devices, directories and pipes may have a size without content.
  const stored = "123456".includes(flag) ? 0 : size;
  const realSize = sparse?.size ?? stored;
  if (!isSize(stored) || !isSize(realSize)) throw damaged("a file's size is invalid");
  let left = stored + padding(stored);
  async function* raw(length: number): AsyncGenerator<Uint8Array> {
    for await (const part of reportTruncation(source.pass(length), damaged)) {
      left -= part.byteLength;
      yield part;
    }
  }
  async function* pieces(): AsyncGenerator<TarPiece> {
    if (sparse !== undefined) {
      const extents = await extentsOf(sparse, { stored, take: raw, fail: damaged });
      for (const { offset, length } of extents) {
        let at = offset;
        for await (const part of raw(length)) {
          const end = at + part.byteLength;
          yield { offset: at, bytes: part };
          at = end;
        }
      }
      return;
    }
    let offset = 0;
    for await (const bytes of raw(stored)) {
      const end = offset + bytes.byteLength;
      // `end` is computed before, since the consumer may detach the memory of `bytes`.
      yield { offset, bytes };
      offset = end;
    }
  }
  return {
    size: realSize,
    isSparse: sparse !== undefined,
    pieces,
    async skip() {
      const isThere = await source.skip(left);
      left = 0;
      if (!isThere) throw damaged("it ends too early");
    },
  };
}

async function takePadded(source: TarSource, size: number, damaged: Damaged): Promise<Uint8Array> {
  if (size > 1024 * 1024) throw damaged("a header is too large");
  const content = await source.take(size + padding(size));
  if (content === undefined) throw damaged("it ends too early");
  return content.subarray(0, size);
}

async function* reportTruncation(
  parts: AsyncGenerator<Uint8Array>,
  damaged: Damaged,
): AsyncGenerator<Uint8Array> {
  try {
    yield* parts;
  } catch (error) {
    throw error instanceof EndOfStreamError ? damaged("it ends too early") : error;
  }
}
