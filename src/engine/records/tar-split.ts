/**
 * A layer's archive without the contents of files, which are in the layer's directory. Together they are the archive, byte for byte: its
 * digest stays, and nothing is on the disk twice. Docker and containers/storage keep the same of their layers, as tar-split.
 *
 * The file has frames, each the length of its compressed bytes and these bytes. A frame has items: literal bytes of the archive,
 * with their length, or the path and the size of a file in the layer's directory.
 */
import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { type BytePath, joinPath, type Path, toPath } from "../system/path.ts";
import { contentBlocks, inChunks } from "./archive-chunks.ts";
import { readingStored } from "./stored-content.ts";

/** The number of bytes that are compressed together. */
const frameBytes = 1024 * 1024;
/** The maximum size of a compressed frame: bytes that don't shrink become a little longer. */
const maxPackedBytes = frameBytes + 64 * 1024;
/** The level of compression, at which headers shrink to a tenth. */
const level = 1;
const kinds = { literal: 0, file: 1 } as const;
const literalHeader = 5;
const fileHeader = 9;

/** Thrown if the split itself can't be read, whatever the layer's directory has. */
export class DamagedSplitError extends BoughError {}

/** Writes the split of an archive while that is read. Disposing it closes the file. */
export class TarSplitWriter implements Disposable {
  readonly #descriptor: number;
  readonly #onWritten: (bytes: number) => void;
  readonly #frame = Buffer.allocUnsafe(frameBytes);
  #filled = 0;
  /** The latest bytes, which may still turn out to be the content of a file, and their position in the archive. */
  #pending: Uint8Array = new Uint8Array();
  #position = 0;
  /** The number of the next bytes that are left out. */
  #skipped = 0;
  #size = 0;

  /** @param onWritten called with the number of bytes that were written to `path` */
  constructor(path: string, onWritten: (bytes: number) => void) {
    this.#descriptor = openSync(path, "wx", 0o600);
    this.#onWritten = onWritten;
  }

  /** Adds the next bytes of the archive. `leaveOut` must have been called for all contents among the earlier ones. */
  add(chunk: Uint8Array): void {
    this.#addLiteral(this.#pending);
    this.#position += this.#pending.byteLength;
    this.#setPending(chunk, 0);
  }

  /** Leaves out the content of a file, from a position of the archive on: `path` in the layer's directory has it. */
  leaveOut(position: number, size: number, path: BytePath): void {
    const before = position - this.#position;
    this.#addLiteral(this.#pending.subarray(0, before));
    const name = Buffer.from(path, "latin1");
    const start = this.#reserve(fileHeader + name.byteLength);
    this.#frame.writeUInt8(kinds.file, start);
    this.#frame.writeUInt16LE(name.byteLength, start + 1);
    this.#frame.writeUIntLE(size, start + 3, 6);
    this.#frame.set(name, start + fileHeader);
    this.#position = position;
    this.#skipped = size;
    this.#setPending(this.#pending, before);
  }

  /** Call it after the last bytes. Returns the size of the split. */
  finish(): number {
    this.#addLiteral(this.#pending);
    this.#flush();
    return this.#size;
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }

  #setPending(bytes: Uint8Array, from: number): void {
    const skipped = Math.min(this.#skipped, bytes.byteLength - from);
    this.#skipped -= skipped;
    this.#position += skipped;
    this.#pending = bytes.subarray(from + skipped);
  }

  #addLiteral(bytes: Uint8Array): void {
    for (let rest = bytes; rest.byteLength > 0; ) {
      const part = rest.subarray(0, frameBytes - literalHeader);
      const start = this.#reserve(literalHeader + part.byteLength);
      this.#frame.writeUInt8(kinds.literal, start);
      this.#frame.writeUInt32LE(part.byteLength, start + 1);
      this.#frame.set(part, start + literalHeader);
      rest = rest.subarray(part.byteLength);
    }
  }

  /** Returns the position of `bytes` free bytes in the frame. */
  #reserve(bytes: number): number {
    if (this.#filled + bytes > frameBytes) this.#flush();
    this.#filled += bytes;
    return this.#filled - bytes;
  }

  #flush(): void {
    if (this.#filled === 0) return;
    const packed = Bun.zstdCompressSync(this.#frame.subarray(0, this.#filled), { level });
    const length = Buffer.alloc(4);
    length.writeUInt32LE(packed.byteLength);
    const bytes = Buffer.concat([length, packed]);
    for (let done = 0; done < bytes.byteLength; ) done += writeSync(this.#descriptor, bytes, done);
    this.#filled = 0;
    this.#size += bytes.byteLength;
    this.#onWritten(bytes.byteLength);
  }
}

/** Puts the archive of an imported layer together again, from its split and its directory. */
export function streamSplit(
  split: string,
  directory: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  return inChunks(splitBlocks(split, directory), signal);
}

/** Yields the archive in blocks of any size. */
export function* splitBlocks(split: string, directory: string): Generator<Uint8Array> {
  for (const item of itemsIn(split)) {
    if (item instanceof Uint8Array) yield item;
    else yield* contentBlocks(joinPath(directory, item.path), item.size);
  }
}

/** Literal bytes of an archive, or a file of the layer's directory whose content comes next. */
type Item = Uint8Array | { path: Path; size: number };

function* itemsIn(path: string): Generator<Item> {
  const descriptor = openSync(path, readingStored);
  try {
    for (let header = read(descriptor, 4); header.byteLength > 0; header = read(descriptor, 4)) {
      const length = header.byteLength < 4 ? 0 : header.readUInt32LE(0);
      if (length === 0 || length > maxPackedBytes) throw damaged(path);
      yield* itemsOf(unpack(read(descriptor, length), path), path);
    }
  } finally {
    closeSync(descriptor);
  }
}

function* itemsOf(frame: Buffer, path: string): Generator<Item> {
  for (let at = 0; at < frame.byteLength; ) {
    const isFile = frame[at] === kinds.file;
    const start = at + (isFile ? fileHeader : literalHeader);
    if (start > frame.byteLength) throw damaged(path);
    const end = start + (isFile ? frame.readUInt16LE(at + 1) : frame.readUInt32LE(at + 1));
    if (end > frame.byteLength) throw damaged(path);
    yield isFile
      ? { path: toPath(frame.toString("latin1", start, end)), size: frame.readUIntLE(at + 3, 6) }
      : frame.subarray(start, end);
    at = end;
  }
}

function unpack(packed: Buffer<ArrayBuffer>, path: string): Buffer {
  try {
    return Bun.zstdDecompressSync(packed);
  } catch {
    throw damaged(path);
  }
}

function damaged(path: string): DamagedSplitError {
  return new DamagedSplitError(`${path}, of which an imported layer's archive is made, is damaged`, {
    hint: wording`${{ command: "engine check", options: [{ option: "repair" }] }} removes it; then import the base image again.`,
  });
}

/** Reads `length` bytes, or fewer at the end of the file. */
function read(descriptor: number, length: number): Buffer<ArrayBuffer> {
  const bytes = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const count = readSync(descriptor, bytes, filled, length - filled, null);
    if (count === 0) break;
    filled += count;
  }
  return bytes.subarray(0, filled);
}
