/** What tells one state of a file from another. */
export interface FileState {
  device: number;
  inode: number;
  size: number;
  /** Milliseconds since the epoch, with a fraction: a quarter of a microsecond is told apart. */
  mtimeMs: number;
  ctimeMs: number;
}

/** Files in columns, each with its state and its content's SHA-256: of a large context, an object and two strings would be felt. */
export class FileColumns {
  #length = 0;
  #states = new Float64Array(firstRows * numbers);
  #hashes = Buffer.alloc(firstRows * hashBytes);
  /** Where each path ends in `#paths`. */
  #ends = new Uint32Array(firstRows);
  #paths = Buffer.alloc(firstRows * hashBytes);
  /** What `toBytes` fills. */
  #packed = new Uint8Array();

  /** What `toBytes` has made, one part after the other. Throws where it is anything else. */
  static from(parts: readonly Uint8Array[]): FileColumns {
    const columns = new FileColumns();
    for (const part of parts) columns.#append(part);
    return columns;
  }

  get length(): number {
    return this.#length;
  }

  /** `sha256`: 64 hexadecimal digits. Returns the row. */
  add(path: string, { device, inode, size, mtimeMs, ctimeMs }: FileState, sha256: string): number {
    const row = this.#addRow(Buffer.byteLength(path));
    const at = row * numbers;
    const states = this.#states;
    states[at] = device;
    states[at + 1] = inode;
    states[at + 2] = size;
    states[at + 3] = mtimeMs;
    states[at + 4] = ctimeMs;
    this.#hashes.write(sha256, row * hashBytes, "hex");
    this.#paths.write(path, this.#startOf(row));
    return row;
  }

  /** Adds a row of other columns. Returns its row here. */
  copy(from: FileColumns, row: number): number {
    const start = from.#startOf(row);
    const end = from.#startOf(row + 1);
    const copied = this.#addRow(end - start);
    const difference = (copied - row) * numbers;
    for (let at = row * numbers; at < (row + 1) * numbers; at++)
      this.#states[at + difference] = from.#states[at] ?? 0;
    from.#hashes.copy(this.#hashes, copied * hashBytes, row * hashBytes, (row + 1) * hashBytes);
    from.#paths.copy(this.#paths, this.#startOf(copied), start, end);
    return copied;
  }

  pathAt(row: number): string {
    return this.#paths.toString("utf8", this.#startOf(row), this.#startOf(row + 1));
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
    this.#length = 0;
  }

  /**
   * The number of rows and of the paths' bytes, the length of each path, and the other columns. Only for a machine like this one, and
   * only until the next call.
   */
  toBytes(): Uint8Array {
    const count = this.#length;
    const pathBytes = this.#startOf(count);
    const places = placesOf(count, pathBytes);
    if (this.#packed.length < places.end) this.#packed = new Uint8Array(places.end);
    const bytes = this.#packed;
    new Uint32Array(bytes.buffer, 0, 2).set([count, pathBytes]);
    const states = new Float64Array(bytes.buffer, places.states, count * numbers);
    states.set(this.#states.subarray(0, count * numbers));
    bytes.set(this.#hashes.subarray(0, count * hashBytes), places.hashes);
    const lengths = new Uint32Array(bytes.buffer, places.lengths, count);
    for (let row = 0; row < count; row++) lengths[row] = this.#startOf(row + 1) - this.#startOf(row);
    bytes.set(this.#paths.subarray(0, pathBytes), places.paths);
    return bytes.subarray(0, places.end);
  }

  #append(part: Uint8Array): void {
    // The numbers in it may not begin anywhere.
    const { buffer, byteOffset: start } = part.byteOffset % 8 === 0 ? part : part.slice();
    const [count = 0, pathBytes = 0] = new Uint32Array(buffer, start, 2);
    const places = placesOf(count, pathBytes);
    if (places.end !== part.length) throw new Error("a part of a file table is cut off");
    const [first, firstByte] = [this.#length, this.#startOf(this.#length)];
    this.#reserve(first + count, firstByte + pathBytes);
    this.#states.set(new Float64Array(buffer, start + places.states, count * numbers), first * numbers);
    this.#hashes.set(new Uint8Array(buffer, start + places.hashes, count * hashBytes), first * hashBytes);
    this.#paths.set(new Uint8Array(buffer, start + places.paths, pathBytes), firstByte);
    const lengths = new Uint32Array(buffer, start + places.lengths, count);
    let end = firstByte;
    for (let row = 0; row < count; row++) {
      end += lengths[row] ?? 0;
      this.#ends[first + row] = end;
    }
    if (end !== firstByte + pathBytes) throw new Error("the paths of a file table are cut off");
    this.#length = first + count;
  }

  /** A row without content, whose path takes so many bytes. */
  #addRow(pathBytes: number): number {
    const row = this.#length;
    const end = this.#startOf(row) + pathBytes;
    this.#reserve(row + 1, end);
    this.#ends[row] = end;
    this.#length = row + 1;
    return row;
  }

  #startOf(row: number): number {
    return row === 0 ? 0 : (this.#ends[row - 1] ?? 0);
  }

  #reserve(rows: number, pathBytes: number): void {
    if (rows > this.#ends.length) {
      const room = Math.max(rows, this.#ends.length * 2);
      this.#ends = grown(this.#ends, new Uint32Array(room));
      this.#states = grown(this.#states, new Float64Array(room * numbers));
      this.#hashes = grown(this.#hashes, Buffer.alloc(room * hashBytes));
    }
    if (pathBytes > this.#paths.length)
      this.#paths = grown(this.#paths, Buffer.alloc(Math.max(pathBytes, this.#paths.length * 2)));
  }
}

const firstRows = 16;
const numbers = 5;
const hashBytes = 32;
const headerBytes = 8;

function placesOf(count: number, pathBytes: number) {
  const states = headerBytes;
  const hashes = states + count * numbers * Float64Array.BYTES_PER_ELEMENT;
  const lengths = hashes + count * hashBytes;
  const paths = lengths + count * Uint32Array.BYTES_PER_ELEMENT;
  return { states, hashes, lengths, paths, end: paths + pathBytes };
}

function grown<Column extends Uint32Array | Float64Array | Buffer>(from: Column, to: Column): Column {
  to.set(from);
  return to;
}
