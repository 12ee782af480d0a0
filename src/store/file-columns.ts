import { growBuffer, lengthsOf, TextColumn } from "../columns/text-column.ts";

/** The parts of `stat` that change when a file does. */
export interface FileState {
  device: number;
  inode: number;
  size: number;
  /** Milliseconds since the epoch, with a precision of a quarter of a microsecond. */
  mtimeMs: number;
  ctimeMs: number;
}

/** Files in columns: path, state and the content's SHA-256. In a large context, an object and two strings each would be slow. */
export class FileColumns {
  readonly paths = new TextColumn();
  #states = new Float64Array();
  #hashes = Buffer.alloc(0);
  /** The buffer that `toBytes` fills. */
  #packed = new Uint8Array();

  /** Reads consecutive parts made by `toBytes`. Throws for anything else. */
  static from(parts: readonly Uint8Array[]): FileColumns {
    const columns = new FileColumns();
    for (const part of parts) columns.#append(part);
    return columns;
  }

  get length(): number {
    return this.paths.length;
  }

  /** `sha256`: 64 hexadecimal digits. Returns the row. */
  add(path: string, { device, inode, size, mtimeMs, ctimeMs }: FileState, sha256: string): number {
    const row = this.paths.push(path);
    this.#reserve(row + 1);
    const at = row * numbers;
    const states = this.#states;
    states[at] = device;
    states[at + 1] = inode;
    states[at + 2] = size;
    states[at + 3] = mtimeMs;
    states[at + 4] = ctimeMs;
    this.#hashes.write(sha256, row * hashBytes, "hex");
    return row;
  }

  /** Adds a row of other columns. Returns its row here. */
  copy(from: FileColumns, row: number): number {
    const copied = this.paths.pushFrom(from.paths, row);
    this.#reserve(copied + 1);
    const difference = (copied - row) * numbers;
    for (let at = row * numbers; at < (row + 1) * numbers; at++)
      this.#states[at + difference] = from.#states[at] ?? 0;
    from.#hashes.copy(this.#hashes, copied * hashBytes, row * hashBytes, (row + 1) * hashBytes);
    return copied;
  }

  /** 64 hexadecimal digits. */
  hashAt(row: number): string {
    return this.#hashes.toString("hex", row * hashBytes, (row + 1) * hashBytes);
  }

  /** Returns whether the file was in exactly that state. */
  isInState(row: number, state: FileState): boolean {
    const at = row * numbers;
    const states = this.#states;
    return (
      states[at + 4] === state.ctimeMs &&
      states[at + 3] === state.mtimeMs &&
      states[at + 2] === state.size &&
      states[at + 1] === state.inode &&
      states[at] === state.device
    );
  }

  clear(): void {
    this.paths.clear();
  }

  /**
   * Returns the number of rows and of the paths' bytes, the length of each path, and the other columns. Readable only on a
   * machine with the same byte order, and valid until the next call.
   */
  toBytes(): Uint8Array {
    const { length: count, bytes: paths, ends } = this.paths;
    const places = placesOf(count, paths.length);
    if (this.#packed.length < places.end) this.#packed = new Uint8Array(places.end);
    const bytes = this.#packed;
    new Uint32Array(bytes.buffer, 0, 2).set([count, paths.length]);
    const states = new Float64Array(bytes.buffer, places.states, count * numbers);
    states.set(this.#states.subarray(0, count * numbers));
    bytes.set(this.#hashes.subarray(0, count * hashBytes), places.hashes);
    const lengths = new Uint32Array(bytes.buffer, places.lengths, count);
    lengths.set(lengthsOf(ends));
    bytes.set(paths, places.paths);
    return bytes.subarray(0, places.end);
  }

  #append(part: Uint8Array): void {
    // Typed arrays require aligned offsets.
    const { buffer, byteOffset: start } = part.byteOffset % 8 === 0 ? part : part.slice();
    const [count = 0, pathBytes = 0] = new Uint32Array(buffer, start, 2);
    const places = placesOf(count, pathBytes);
    if (places.end !== part.length) throw new Error("a part of a file table is cut off");
    const first = this.length;
    this.paths.append(
      new Uint8Array(buffer, start + places.paths, pathBytes),
      new Uint32Array(buffer, start + places.lengths, count),
    );
    this.#reserve(first + count);
    this.#states.set(new Float64Array(buffer, start + places.states, count * numbers), first * numbers);
    this.#hashes.set(new Uint8Array(buffer, start + places.hashes, count * hashBytes), first * hashBytes);
  }

  #reserve(rows: number): void {
    if (rows * hashBytes > this.#hashes.length)
      this.#hashes = Buffer.from(growBuffer(this.#hashes.buffer, rows * hashBytes));
    if (rows * numbers > this.#states.length)
      this.#states = new Float64Array(growBuffer(this.#states.buffer, rows * numbers * numberBytes));
  }
}

const numbers = 5;
const numberBytes = Float64Array.BYTES_PER_ELEMENT;
const hashBytes = 32;
const headerBytes = 8;

function placesOf(count: number, pathBytes: number) {
  const states = headerBytes;
  const hashes = states + count * numbers * numberBytes;
  const lengths = hashes + count * hashBytes;
  const paths = lengths + count * Uint32Array.BYTES_PER_ELEMENT;
  return { states, hashes, lengths, paths, end: paths + pathBytes };
}
