/** What is remembered of a context's files, packed: read in one go, and looked up without taking all of it apart. */

/** What tells one state of a file from another. */
export interface FileState {
  device: number;
  inode: number;
  size: number;
  /** Milliseconds since the epoch, with a fraction: a quarter of a microsecond is told apart. */
  mtimeMs: number;
  ctimeMs: number;
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
    one.ctimeMs === other.ctimeMs &&
    one.mtimeMs === other.mtimeMs &&
    one.size === other.size &&
    one.inode === other.inode &&
    one.device === other.device
  );
}

// Fields are in columns: stamp, count and the paths' length; five numbers a file; 64 digits a file; the paths with NUL
// between them.
const stamp = 0xb0000002;
const headerBytes = 16;
const numbers = 5;
const digits = 64;

export function packFiles(rows: readonly FileRow[]): Uint8Array {
  const count = rows.length;
  const hashesAt = headerBytes + count * numbers * Float64Array.BYTES_PER_ELEMENT;
  const pathsAt = hashesAt + count * digits;
  // All in one place from the beginning: parts to be joined would take as much again.
  const pathBytes = Math.max(
    0,
    rows.reduce((sum, { path }) => sum + Buffer.byteLength(path) + 1, -1),
  );
  const packed = Buffer.alloc(pathsAt + pathBytes);
  const { buffer, byteOffset: start } = packed;
  new Uint32Array(buffer, start, 3).set([stamp, count, pathBytes]);
  const states = new Float64Array(buffer, start + headerBytes, count * numbers);
  let pathAt = pathsAt;
  let index = 0;
  for (const { path, state, sha256 } of rows) {
    const at = index * numbers;
    states[at] = state.device;
    states[at + 1] = state.inode;
    states[at + 2] = state.size;
    states[at + 3] = state.mtimeMs;
    states[at + 4] = state.ctimeMs;
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
  // The header's numbers may not begin anywhere.
  const { buffer, byteOffset: start } = packed.byteOffset % 8 === 0 ? packed : packed.slice();
  const [found, count = 0, pathBytes = 0] =
    packed.length < headerBytes ? [] : new Uint32Array(buffer, start, 3);
  const hashesAt = headerBytes + count * numbers * Float64Array.BYTES_PER_ELEMENT;
  const pathsAt = hashesAt + count * digits;
  if (found !== stamp || count === 0 || packed.length !== pathsAt + pathBytes) return emptyTable;

  // A copy, so that nothing holds on to all the rest as well.
  const states = new Float64Array(buffer.slice(start + headerBytes, start + hashesAt));
  const hashes = Buffer.from(buffer, start + hashesAt, count * digits).toString("latin1");
  const allPaths = Buffer.from(buffer, start + pathsAt, pathBytes).toString();
  const splitPaths = () => {
    const paths = allPaths.split("\0");
    return paths.length === count ? paths : [];
  };

  const isAsked = new Uint8Array(count);
  let asked = 0;
  let next = 0;
  /** Where the path of `next` begins. */
  let nextAt = 0;
  let paths: string[] | undefined;
  let places: Map<string, number> | undefined;
  /**
   * Files are asked for in the order in which they were written, if nothing has changed: then no map is needed, and no string for
   * each.
   */
  function placeOf(path: string): number | undefined {
    if (paths === undefined ? isNext(path) : paths[next] === path) {
      nextAt += path.length + 1;
      return next++;
    }
    paths ??= splitPaths();
    places ??= new Map(paths.map((each, index) => [each, index]));
    const place = places.get(path);
    if (place !== undefined) next = place + 1;
    return place;
  }
  function isNext(path: string): boolean {
    const end = nextAt + path.length;
    const isWhole = end === allPaths.length || allPaths.charCodeAt(end) === 0;
    return next < count && isWhole && allPaths.startsWith(path, nextAt);
  }
  const rowAt = (path: string, place: number): FileRow => {
    const [device = 0, inode = 0, size = 0, mtimeMs = 0, ctimeMs = 0] = states.subarray(
      place * numbers,
      (place + 1) * numbers,
    );
    const state = { device, inode, size, mtimeMs, ctimeMs };
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
        states[at + 4] === state.ctimeMs &&
        states[at + 3] === state.mtimeMs &&
        states[at + 2] === state.size &&
        states[at + 1] === state.inode &&
        states[at] === state.device;
      return isSame ? hashAt(place) : undefined;
    },
    rows: () => splitPaths().map(rowAt),
    askedFor: () =>
      splitPaths()
        .map(rowAt)
        .filter((_, place) => isAsked[place] === 1),
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
