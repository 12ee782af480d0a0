/** Maps of sparse files, in the four forms that GNU tar writes and reads. */
import { blockBytes, numberAt } from "./tar-header.ts";

interface Extent {
  offset: number;
  length: number;
}

/** A valid map has an entry for each range of data. A larger map would take too much memory and time. */
const maxExtents = 1_000_000;
/** Decimal digits of a number that a double represents exactly. */
const maxDigits = 15;

interface SparseFile {
  /** Bytes in the archive, including a map that precedes the data. */
  stored: number;
  take(length: number): AsyncGenerator<Uint8Array>;
  /** Makes the error for an invalid map. */
  fail(how: string): Error;
}

/** A file without its holes. */
export interface Sparse {
  /** Bytes of the file, including holes. */
  size: number;
  /** Offset and length of each extent, in turn; `undefined` if the map precedes the data. */
  numbers: readonly number[] | undefined;
}

/** Reads a sparse file's PAX records, in the formats 0.0, 0.1 and 1.0. Returns `undefined` for another file. */
export function sparseOf(
  records: ReadonlyMap<string, string>,
  fail: (how: string) => Error,
): Sparse | undefined {
  const major = records.get("GNU.sparse.major");
  const minor = records.get("GNU.sparse.minor") ?? "0";
  if (major === "1" && minor === "0")
    return { size: Number(records.get("GNU.sparse.realsize") ?? 0), numbers: undefined };
  if (major !== undefined && major !== "0") throw fail("a sparse file has an unsupported format");
  const size = records.get("GNU.sparse.size") ?? records.get("GNU.sparse.realsize");
  if (size === undefined) return undefined;
  const map = records.get("GNU.sparse.map") ?? "";
  const numbers =
    map === "" ? [] : map.split(",").map((text) => (/^\d{1,15}$/.test(text) ? Number(text) : -1));
  if (numbers.length % 2 !== 0 || numbers.includes(-1))
    throw fail("a sparse file's map contains something that is not a number");
  return { size: Number(size), numbers };
}

/** Reads GNU's own format: the map begins in the header and goes on in the blocks after it. */
export async function readGnuSparse(
  header: Uint8Array,
  takeBlock: () => Promise<Uint8Array>,
  fail: (how: string) => Error,
): Promise<Sparse> {
  const numbers: number[] = [];
  const addFrom = (block: Uint8Array, start: number, count: number) => {
    for (let at = start; at < start + count * slotBytes && block[at + numberBytes] !== 0; at += slotBytes)
      numbers.push(numberAt(block, at, numberBytes), numberAt(block, at + numberBytes, numberBytes));
  };
  addFrom(header, 386, 4);
  let isContinued = header[482] !== 0;
  while (isContinued) {
    const block = await takeBlock();
    addFrom(block, 0, 21);
    if (numbers.length > 2 * maxExtents)
      throw fail(`a sparse file's map has more than ${maxExtents} entries`);
    isContinued = block[504] !== 0;
  }
  return { size: numberAt(header, 483, numberBytes), numbers };
}

const numberBytes = 12;
const slotBytes = 2 * numberBytes;

/** Returns the extents in order. Throws if they overlap, exceed the file's size, or have more bytes than are stored. */
export async function extentsOf({ size, numbers: given }: Sparse, file: SparseFile): Promise<Extent[]> {
  const { stored, fail } = file;
  const { numbers, read } = given === undefined ? await readNumbers(file) : { numbers: given, read: 0 };
  const extents: Extent[] = [];
  let end = 0;
  let data = 0;
  for (let at = 0; at < numbers.length; at += 2) {
    const [offset = 0, length = 0] = [numbers[at], numbers[at + 1]];
    if (offset < end || length < 0 || offset + length > size)
      throw fail("a sparse file's map does not fit its size");
    extents.push({ offset, length });
    end = offset + length;
    data += length;
  }
  if (read + data > stored) throw fail("a sparse file's map does not fit its size");
  return extents;
}

/**
 * Reads the map of format 1.0: the number of extents and two numbers for each, one per line, padded to whole blocks. Returns these
 * two numbers for each, and how many bytes they take.
 */
async function readNumbers({ stored, take, fail }: SparseFile): Promise<{ numbers: number[]; read: number }> {
  const numbers: number[] = [];
  let count: number | undefined;
  const isWhole = () => count !== undefined && numbers.length === 2 * count;
  /** Adds a number of the file. Returns false after the last one. */
  const add = (number: number): boolean => {
    if (count !== undefined) numbers.push(number);
    else if (number <= maxExtents) count = number;
    else throw fail(`a sparse file's map has more than ${maxExtents} entries`);
    return !isWhole();
  };
  const lines = createNumberReader(add, fail);
  for (let read = blockBytes; read <= stored; read += blockBytes) {
    const block: number[] = [];
    for await (const part of take(blockBytes)) block.push(...part);
    if (!lines.read(block)) return { numbers, read };
  }
  throw fail("a sparse file's map is missing");
}

/** Reads a number per line. `read` returns false, and reads no more, once `add` has returned false. */
function createNumberReader(add: (number: number) => boolean, fail: SparseFile["fail"]) {
  let number = 0;
  let digits = 0;
  return {
    read(bytes: readonly number[]): boolean {
      for (const byte of bytes) {
        if (byte >= zero && byte <= nine && digits < maxDigits) {
          number = number * 10 + byte - zero;
          digits++;
        } else if (byte === lineFeed && digits > 0) {
          if (!add(number)) return false;
          number = 0;
          digits = 0;
        } else throw fail("a sparse file's map contains something that is not a number");
      }
      return true;
    },
  };
}

const lineFeed = 0x0a;
const zero = 0x30;
const nine = 0x39;
