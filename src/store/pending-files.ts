import { FileColumns, type FileState } from "./file-columns.ts";

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
