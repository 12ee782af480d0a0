import { FileColumns, type FileState } from "./file-columns.ts";

/** The remembered files of a context. */
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
