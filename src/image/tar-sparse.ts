/** Maps of GNU's sparse files, format 1.0: one number per line, padded to whole blocks, before the data. */
import { blockBytes } from "./tar-header.ts";

interface Extent {
  offset: number;
  length: number;
}

/** A valid map has an entry for each range of data. A larger map would take too much memory and time. */
const maxExtents = 1_000_000;
/** Decimal digits of a number that a double represents exactly. */
const maxDigits = 15;

interface SparseFile {
  /** Bytes in the archive, including the map. */
  stored: number;
  /** Bytes of the file, including holes. */
  size: number;
  take(length: number): AsyncGenerator<Uint8Array>;
  /** Makes the error for an invalid map. */
  fail(how: string): Error;
}

/** Reads the extents in order. Throws if they overlap, exceed the file's size, or have more bytes than are stored. */
export async function readSparseMap(file: SparseFile): Promise<Extent[]> {
  const { stored, size, fail } = file;
  const { numbers, read } = await readNumbers(file);
  const extents: Extent[] = [];
  let end = 0;
  let data = 0;
  for (let at = 1; at < numbers.length; at += 2) {
    const [offset = 0, length = 0] = numbers.slice(at, at + 2);
    if (offset < end || offset + length > size) throw fail("a sparse file's map does not fit its size");
    extents.push({ offset, length });
    end = offset + length;
    data += length;
  }
  if (read + data > stored) throw fail("a sparse file's map does not fit its size");
  return extents;
}

/** Returns the number of extents followed by two numbers for each, and how many bytes they take. */
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
      } else throw fail("a sparse file's map contains something that is not a number");
    }
    if (isWhole()) return { numbers, read };
  }
  throw fail("a sparse file's map is missing");
}

const lineFeed = 0x0a;
const zero = 0x30;
const nine = 0x39;
