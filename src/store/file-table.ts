import type { FileColumns, FileState } from "./file-columns.ts";

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
