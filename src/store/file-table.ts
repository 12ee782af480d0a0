import { growBuffer, lengthsOf, TextColumn } from "../columns/text-column.ts";

/** The stored hashes of a context's files. */
export interface FileTable {
  readonly columns: FileColumns;
  /** Returns the hash of this path, if the file was in exactly this state. */
  get(path: string, state: FileState): string | undefined;
  /** The number of rows whose paths have been queried. */
  readonly queried: number;
  isQueried(row: number): boolean;
}

export function createFileTable(columns: FileColumns): FileTable {
  const queried = new Uint8Array(columns.length);
  let count = 0;
  let next = 0;
  let rows: ReadonlyMap<string, number> | undefined;
  /** If nothing has changed, files are queried in the order in which they were written, which needs no index. */
  function rowOf(path: string): number | undefined {
    if (next < columns.length && columns.paths.at(next) === path) return next++;
    rows ??= new Map(Array.from(columns.paths, (each, row) => [each, row]));
    const row = rows.get(path);
    if (row !== undefined) next = row + 1;
    return row;
  }
  return {
    columns,
    get queried() {
      return count;
    },
    isQueried: (row) => queried[row] === 1,
    get(path, state) {
      const row = rowOf(path);
      if (row === undefined) return undefined;
      if (queried[row] === 0) count++;
      queried[row] = 1;
      return columns.isInState(row, state) ? columns.hashAt(row) : undefined;
    },
  };
}

/** Files in the order in which they were added. A path that is added again gets a new row, which replaces the old one. */
export class PendingFiles {
  readonly columns = new FileColumns();
  readonly #rows = new Map<string, number>();
  readonly #replaced = new Set<number>();

  add(path: string, state: FileState, sha256: string): void {
    // An unpaired surrogate would be read back as another character: such a path would never be found.
    if (path.isWellFormed()) this.#index(path, this.columns.add(path, state, sha256));
  }

  find(path: string): number | undefined {
    return this.#rows.get(path);
  }

  /** Returns false if the path was added again. */
  isLatest(row: number): boolean {
    return !this.#replaced.has(row);
  }

  /** Returns all but the first `count` rows. */
  after(count: number): PendingFiles {
    const rest = new PendingFiles();
    for (let row = count; row < this.columns.length; row++)
      rest.#index(this.columns.paths.at(row), rest.columns.copy(this.columns, row));
    return rest;
  }

  #index(path: string, row: number): void {
    const before = this.#rows.get(path);
    this.#rows.set(path, row);
    if (before !== undefined) this.#replaced.add(before);
  }
}

/** The parts of `stat` that change when a file does. */
export interface FileState {
  device: number;
  inode: number;
  size: number;
  /** Milliseconds since the epoch, with a precision of a quarter of a microsecond. */
  mtimeMs: number;
  ctimeMs: number;
}

/** Files in columns: path, state and the content's SHA-256. For a large context, an object and two strings for each would be slow. */
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

  /** Returns the SHA-256, in 64 hexadecimal digits. */
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
