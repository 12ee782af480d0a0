import { TextIndex } from "../columns/text-index.ts";
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
  let rows: TextIndex | undefined;
  /** If nothing has changed, files are queried in the order in which they were written, which needs no index. */
  function rowOf(path: string): number | undefined {
    if (next < columns.length && columns.paths.at(next) === path) return next++;
    rows ??= rowsByPath(columns);
    const row = rows.find(path);
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

function rowsByPath({ paths }: FileColumns): TextIndex {
  const rows = new TextIndex(paths);
  for (let row = 0; row < paths.length; row++) rows.set(paths.at(row), row);
  return rows;
}
