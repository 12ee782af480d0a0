/** The maps of GNU's sparse files, format 1.0: numbers on lines of their own, padded to whole blocks, before the data. */
import { blockBytes } from "./tar-header.ts";

interface Extent {
  offset: number;
  length: number;
}

/** An honest map has an entry for each stretch of data; more than this is worth neither the memory nor the time. */
const maxExtents = 1_000_000;
/** Decimal digits of a number that a double holds exactly. */
const maxDigits = 15;

interface SparseFile {
  /** Bytes in the archive, map included. */
  stored: number;
  /** Bytes of the file, holes included. */
  size: number;
  take(length: number): AsyncGenerator<Uint8Array>;
  /** Makes the error for a map that can't be one. */
  fail(how: string): Error;
}

/** Extents in their order, none of them over another or beyond the file's end, and no more bytes than there are. */
export async function readSparseMap(file: SparseFile): Promise<Extent[]> {
  const { stored, size, fail } = file;
  const { numbers, read } = await readNumbers(file);
  const extents: Extent[] = [];
  let end = 0;
  let data = 0;
  for (let at = 1; at < numbers.length; at += 2) {
    const [offset = 0, length = 0] = numbers.slice(at, at + 2);
    if (offset < end || offset + length > size) throw fail("a sparse file's map does not fit it");
    extents.push({ offset, length });
    end = offset + length;
    data += length;
  }
  if (read + data > stored) throw fail("a sparse file's map does not fit it");
  return extents;
}

/** The number of extents, and two for each; and how many bytes they take. */
async function readNumbers({ stored, take, fail }: SparseFile): Promise<{ numbers: number[]; read: number }> {
  const numbers: number[] = [];
  let number = 0;
  let digits = 0;
  const isWhole = () => numbers.length === 1 + 2 * (numbers[0] ?? 0);
  for (let read = blockBytes; read <= stored; read += blockBytes) {
    const block: number[] = [];
    for await (const part of take(blockBytes)) block.push(...part);
    for (const byte of block) {
      if (isWhole()) break;
      if (byte >= zero && byte <= nine && digits < maxDigits) {
        number = number * 10 + byte - zero;
        digits++;
      } else if (byte === lineFeed && digits > 0) {
        if (numbers.length === 0 && number > maxExtents)
          throw fail(`a sparse file's map has more than ${maxExtents} entries`);
        numbers.push(number);
        number = 0;
        digits = 0;
      } else throw fail("a sparse file's map has something in it that is not a number");
    }
    if (isWhole()) return { numbers, read };
  }
  throw fail("a sparse file's map is missing");
}

const lineFeed = 0x0a;
const zero = 0x30;
const nine = 0x39;
