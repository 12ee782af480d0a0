/** Reading a tar archive while it arrives: one entry after the other, none of them held in memory. */
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
import { createTarSource, EndOfStreamError, type TarSource } from "./tar-source.ts";
import { readSparseMap } from "./tar-sparse.ts";

export interface TarEntry {
  /** The archive's own name: whoever writes files by it has to check it. */
  name: string;
  type: "file" | "directory" | "symlink" | "hardlink" | "other";
  /** Permission bits, 0 to 0o7777. */
  mode: number;
  uid: number;
  gid: number;
  /** True for a block or character device, which has the type `other`. */
  isDevice: boolean;
  /** tar's own type: `3` and `4` are devices, `6` is a pipe. */
  flag: string;
  /** A device's number. */
  major: number;
  minor: number;
  attributes: readonly { name: string; value: Buffer }[];
  /** The size of a file, holes included. */
  size: number;
  /** How many bytes of the archive come before the entry's headers. */
  start: number;
  /** The same before the content. */
  offset: number;
  /** True if the content is stored without its holes. */
  isSparse: boolean;
  /** Seconds since the epoch. */
  modified: number;
  /** What a link leads to. */
  target: string;
  /** A file's content, to be read before the next entry is asked for; what is between the pieces is a hole. */
  pieces(): AsyncGenerator<TarPiece>;
}

interface TarPiece {
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

/** Headers that say something about the entry behind them; an entry needs three or so. */
const maxHeadersInARow = 100;

/**
 * Rejects where the archive is damaged, or ends before its end; `archive` names it in the message. What comes behind the
 * archive's end is not read: the stream is left there.
 */
export function readTar(
  stream: AsyncIterable<Uint8Array>,
  archive = "the archive from the service",
): AsyncGenerator<TarEntry> {
  return readAs(stream, { text: decode, needsEnd: true, problem: `${archive} is damaged` });
}

/**
 * Does what `readTar` does, for a layer of an image: names have a character for each byte (latin1), since no byte of them may be
 * lost, and the end may be missing, as it is in what some programs write.
 */
export function readLayerTar(stream: AsyncIterable<Uint8Array>, layer: string): AsyncGenerator<TarEntry> {
  return readAs(stream, { text: decodeName, needsEnd: false, problem: `${layer} is not a layer` });
}

interface Style {
  text: DecodeText;
  /** True if an archive that stops where another entry could begin is damaged. */
  needsEnd: boolean;
  /** What a message begins with. */
  problem: string;
}

async function* readAs(stream: AsyncIterable<Uint8Array>, style: Style): AsyncGenerator<TarEntry> {
  const source = createTarSource(stream);
  try {
    yield* readEntries(source, style);
  } catch (error) {
    throw error instanceof DamageError ? new BoughError(`${style.problem}: ${error.message}`) : error;
  } finally {
    await source.close();
  }
}

/** How an archive is damaged. */
class DamageError extends Error {
  override readonly name = "DamageError";
}

async function* readEntries(source: TarSource, { text, needsEnd }: Style): AsyncGenerator<TarEntry> {
  const global = new Map<string, string>();
  let own = new Map<string, string>();
  let headers = 0;
  let start = 0;
  for (;;) {
    if (headers === 0) start = source.position();
    const block = await source.take(blockBytes);
    if (block === undefined && !needsEnd && source.position() === start) return;
    if (block === undefined) throw damaged("it ends too early");
    if (isZeroBlock(block)) return;
    const raw = parseHeader(block, text);
    if (raw === undefined) throw damaged("a header's checksum is wrong");
    if ("xgLK".includes(raw.flag)) {
      if (++headers > maxHeadersInARow) throw damaged("it has headers that belong to no entry");
      const content = await takePadded(source, raw.size);
      if (raw.flag === "g") for (const [key, value] of parsePaxRecords(content, text)) global.set(key, value);
      else if (raw.flag === "x") own = parsePaxRecords(content, text);
      else own.set(raw.flag === "L" ? "path" : "linkpath", text(content));
      continue;
    }
    const records = new Map([...global, ...own]);
    own = new Map();
    headers = 0;
    const header = withPaxRecords(raw, records);
    if (isOtherSparse(raw.flag, records))
      throw damaged(`${JSON.stringify(header.name)} is sparse in a format that bough does not know`);
    const content = createContent(source, header, records);
    const { size, isSparse, pieces } = content;
    const attributes = attributesIn(records);
    yield { ...describe(header), attributes, start, offset: source.position(), size, isSparse, pieces };
    await content.skip();
  }
}

function describe(
  header: TarHeader,
): Omit<TarEntry, "size" | "start" | "offset" | "isSparse" | "pieces" | "attributes"> {
  const { name, flag, mode, uid, gid, modified, linkName, major, minor } = header;
  // A slash at the end of the name meant a directory before there was a type for them.
  const type = flag === "0" && name.endsWith("/") ? "directory" : (types[flag] ?? "other");
  const isDevice = "34".includes(flag);
  return { name, type, flag, mode, uid, gid, isDevice, major, minor, modified, target: linkName };
}

/** GNU's own type, or its first formats in PAX: read as plain files, they would have their holes closed. */
function isOtherSparse(flag: string, records: ReadonlyMap<string, string>): boolean {
  const major = records.get("GNU.sparse.major");
  const isKnown = major === "1" && (records.get("GNU.sparse.minor") ?? "0") === "0";
  return flag === "S" || (major === undefined ? records.has("GNU.sparse.size") : !isKnown);
}

function isSize(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function createContent(source: TarSource, { flag, size }: TarHeader, records: ReadonlyMap<string, string>) {
  // Links, devices, directories and pipes may carry a size that stands for nothing.
  const stored = "123456".includes(flag) ? 0 : size;
  const isSparse = records.has("GNU.sparse.major");
  const realSize = isSparse ? Number(records.get("GNU.sparse.realsize") ?? 0) : stored;
  if (!isSize(stored) || !isSize(realSize)) throw damaged("a file's size is invalid");
  let left = stored + padding(stored);
  async function* raw(length: number): AsyncGenerator<Uint8Array> {
    for await (const part of fromStart(source.pass(length))) {
      left -= part.byteLength;
      yield part;
    }
  }
  async function* pieces(): AsyncGenerator<TarPiece> {
    if (isSparse) {
      const extents = await readSparseMap({ stored, size: realSize, take: raw, fail: damaged });
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
      // Whoever gets the bytes may give their memory back.
      yield { offset, bytes };
      offset = end;
    }
  }
  return {
    size: realSize,
    isSparse,
    pieces,
    async skip() {
      for await (const _ of raw(left));
    },
  };
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

function damaged(how: string): DamageError {
  return new DamageError(how);
}
