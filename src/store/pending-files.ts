import { TextIndex } from "../text-index.ts";
import { FileColumns, type FileState } from "./file-columns.ts";

/** Files in the order in which they came. A path that comes again has a new row, and that one is found. */
export class PendingFiles {
  readonly columns = new FileColumns();
  readonly #rows = new TextIndex(this.columns.paths);
  readonly #replaced = new Set<number>();

  add(path: string, state: FileState, sha256: string): void {
    // Half of a character is read back as another one: such a path would never be found.
    if (path.isWellFormed()) this.#index(path, this.columns.add(path, state, sha256));
  }

  find(path: string): number | undefined {
    return this.#rows.find(path);
  }

  /** False where the path has come again since. */
  isLatest(row: number): boolean {
    return !this.#replaced.has(row);
  }

  /** All but the first `count`. */
  after(count: number): PendingFiles {
    const rest = new PendingFiles();
    for (let row = count; row < this.columns.length; row++)
      rest.#index(this.columns.paths.at(row), rest.columns.copy(this.columns, row));
    return rest;
  }

  #index(path: string, row: number): void {
    const before = this.#rows.set(path, row);
    if (before !== undefined) this.#replaced.add(before);
  }
}
