/** What is remembered of a context's files, packed: read in one go, and looked up without taking all of it apart. */

/** What tells one state of a file from another. */
export interface FileState {
  device: bigint;
  inode: bigint;
  size: bigint;
  mtimeNanoseconds: bigint;
  ctimeNanoseconds: bigint;
}

export interface FileRow {
  path: string;
  state: FileState;
  /** 64 hexadecimal digits. */
  sha256: string;
}

export interface FileTable {
  readonly length: number;
  /** The hash of exactly this path in this state. */
  get(path: string, state: FileState): string | undefined;
  rows(): FileRow[];
  /** How many rows' paths have been asked for. */
  readonly asked: number;
  askedFor(): FileRow[];
}

export function isSameState(one: FileState, other: FileState): boolean {
  return (
    one.ctimeNanoseconds === other.ctimeNanoseconds &&
    one.mtimeNanoseconds === other.mtimeNanoseconds &&
    one.size === other.size &&
    one.inode === other.inode &&
    one.device === other.device
  );
}

// Fields are in columns: stamp, count and the paths' length; five numbers a file; 64 digits a file; the paths with NUL
// between them.
const stamp = 0xb0000001;
const headerBytes = 16;
const numbers = 5;
const digits = 64;

export function packFiles(rows: readonly FileRow[]): Uint8Array {
  const count = rows.length;
  const hashesAt = headerBytes + count * numbers * BigUint64Array.BYTES_PER_ELEMENT;
  const pathsAt = hashesAt + count * digits;
  // All in one place from the beginning: parts to be joined would take as much again.
  const pathBytes = Math.max(
    0,
    rows.reduce((sum, { path }) => sum + Buffer.byteLength(path) + 1, -1),
  );
  const packed = Buffer.alloc(pathsAt + pathBytes);
  const { buffer, byteOffset: start } = packed;
  new Uint32Array(buffer, start, 3).set([stamp, count, pathBytes]);
  const states = new BigUint64Array(buffer, start + headerBytes, count * numbers);
  let pathAt = pathsAt;
  let index = 0;
  for (const { path, state, sha256 } of rows) {
    const at = index * numbers;
    states[at] = state.device;
    states[at + 1] = state.inode;
    states[at + 2] = state.size;
    states[at + 3] = state.mtimeNanoseconds;
    states[at + 4] = state.ctimeNanoseconds;
    packed.write(sha256, hashesAt + index * digits, "latin1");
    pathAt += packed.write(path, pathAt) + 1;
    index++;
  }
  // A quarter as long, in less time than SQLite takes to write the rest; it makes two copies, too.
  return Bun.zstdCompressSync(packed, { level: 1 });
}

/** Anything that `packFiles` has not made, on a machine like this one, is an empty table. */
export function openFileTable(compressed: Uint8Array): FileTable {
  const packed = decompress(compressed);
  // Numbers may not begin anywhere.
  const { buffer, byteOffset: start } = packed.byteOffset % 8 === 0 ? packed : packed.slice();
  const [found, count = 0, pathBytes = 0] =
    packed.length < headerBytes ? [] : new Uint32Array(buffer, start, 3);
  const hashesAt = headerBytes + count * numbers * BigUint64Array.BYTES_PER_ELEMENT;
  const pathsAt = hashesAt + count * digits;
  if (found !== stamp || count === 0 || packed.length !== pathsAt + pathBytes) return emptyTable;

  const states = new BigUint64Array(buffer, start + headerBytes, count * numbers);
  const hashes = Buffer.from(buffer, start + hashesAt, count * digits).toString("latin1");
  const paths = Buffer.from(buffer, start + pathsAt, pathBytes)
    .toString()
    .split("\0");
  if (paths.length !== count) return emptyTable;

  const isAsked = new Uint8Array(count);
  let asked = 0;
  let next = 0;
  let places: Map<string, number> | undefined;
  /** Files are asked for in the order in which they were written, if nothing has changed: then no map is needed. */
  function placeOf(path: string): number | undefined {
    if (paths[next] === path) return next++;
    places ??= new Map(paths.map((each, index) => [each, index]));
    const place = places.get(path);
    if (place !== undefined) next = place + 1;
    return place;
  }
  const rowAt = (path: string, place: number): FileRow => {
    const [device = 0n, inode = 0n, size = 0n, mtimeNanoseconds = 0n, ctimeNanoseconds = 0n] =
      states.subarray(place * numbers, (place + 1) * numbers);
    const state = { device, inode, size, mtimeNanoseconds, ctimeNanoseconds };
    return { path, state, sha256: hashAt(place) };
  };
  const hashAt = (place: number) => hashes.slice(place * digits, (place + 1) * digits);

  return {
    length: count,
    get asked() {
      return asked;
    },
    get(path, state) {
      const place = placeOf(path);
      if (place === undefined) return undefined;
      if (isAsked[place] === 0) asked++;
      isAsked[place] = 1;
      const at = place * numbers;
      const isSame =
        states[at + 4] === state.ctimeNanoseconds &&
        states[at + 3] === state.mtimeNanoseconds &&
        states[at + 2] === state.size &&
        states[at + 1] === state.inode &&
        states[at] === state.device;
      return isSame ? hashAt(place) : undefined;
    },
    rows: () => paths.map(rowAt),
    askedFor: () => paths.map(rowAt).filter((_, place) => isAsked[place] === 1),
  };
}

function decompress(compressed: Uint8Array): Uint8Array {
  try {
    return Bun.zstdDecompressSync(compressed);
  } catch {
    return new Uint8Array();
  }
}

const emptyTable: FileTable = {
  length: 0,
  asked: 0,
  get: () => undefined,
  rows: () => [],
  askedFor: () => [],
};
