/** The stored form of a context's files: parts that are compressed one by one, so that packing can yield in between. */
import { FileColumns, type PendingFiles } from "./file-table.ts";

/** The version of the format: a new layout gets a new number. */
const stamp = 0xb0000003;
const numberBytes = Uint32Array.BYTES_PER_ELEMENT;
/** Rows of a part, which take some milliseconds to pack. */
const partRows = 4096;

class FilePacker {
  // Reused for all parts: a new one for each would be slow to grow, and to collect.
  readonly #part = new FileColumns();
  readonly #packed: Uint8Array[] = [];

  /** Returns whether a part was full, and was packed. */
  add(from: FileColumns, row: number): boolean {
    this.#part.copy(from, row);
    if (this.#part.length < partRows) return false;
    this.#pack();
    return true;
  }

  end(): Uint8Array {
    if (this.#part.length > 0) this.#pack();
    return Buffer.concat([uint32Bytes(stamp), ...this.#packed]);
  }

  #pack(): void {
    // A third of the size, in less time than SQLite would take to write the rest.
    const compressed = Bun.zstdCompressSync(this.#part.toBytes(), { level: 1 });
    this.#packed.push(uint32Bytes(compressed.length), compressed);
    this.#part.clear();
  }
}

/** Returns no files for data that `FilePacker` has not made on a machine with the same byte order. */
export function unpackFiles(packed: Uint8Array): FileColumns {
  try {
    const bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.length);
    if (bytes.readUInt32LE(0) !== stamp) return new FileColumns();
    const parts: Uint8Array[] = [];
    for (let at = numberBytes; at < bytes.length; ) {
      const end = at + numberBytes + bytes.readUInt32LE(at);
      if (end > bytes.length) return new FileColumns();
      parts.push(Bun.zstdDecompressSync(bytes.subarray(at + numberBytes, end)));
      at = end;
    }
    return FileColumns.from(parts);
  } catch {
    return new FileColumns();
  }
}

function uint32Bytes(number: number): Uint8Array {
  const bytes = Buffer.alloc(numberBytes);
  bytes.writeUInt32LE(number);
  return bytes;
}

/**
 * Packs changed files in their old places, and new ones at the end. Yields after each part. Considers only the first `count`
 * pending files: there may be more when it continues.
 */
export function* packMerged(
  before: FileColumns,
  pending: PendingFiles,
  count: number,
): Generator<undefined, Uint8Array> {
  const packer = new FilePacker();
  const isPacked = new Uint8Array(count);
  for (let row = 0; row < before.length; row++) {
    const change = pending.find(before.paths.at(row));
    const isChanged = change !== undefined && change < count;
    if (isChanged) isPacked[change] = 1;
    if (isChanged ? packer.add(pending.columns, change) : packer.add(before, row)) yield;
  }
  for (let row = 0; row < count; row++) {
    if (pending.isLatest(row) && isPacked[row] === 0 && packer.add(pending.columns, row)) yield;
  }
  return packer.end();
}

/** Packs the rows to keep. */
export function packSome(columns: FileColumns, isKept: (row: number) => boolean): Uint8Array {
  const packer = new FilePacker();
  for (let row = 0; row < columns.length; row++) if (isKept(row)) packer.add(columns, row);
  return packer.end();
}
