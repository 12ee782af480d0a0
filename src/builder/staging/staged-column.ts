import { growBuffer } from "../../columns/grow-buffer.ts";
import { type Column, TextMap } from "../../columns/text-map.ts";
import { ContextFile } from "./context-file.ts";
import type { StagedDirectory, StagedEntry } from "./staged.ts";

/** The number of entries from which columns pay off: below it a plain map is faster, and there may be thousands of COPYs. */
const manyEntries = 1000;

/** Returns an empty map for at least `count` entries. */
export function stagedMap(count: number): Map<string, StagedEntry> | TextMap<StagedEntry> {
  return count < manyEntries ? new Map() : new TextMap(new StagedColumn());
}

/**
 * Staged entries in columns. Most entries of a large context are files of one list and equal directories. An object for each
 * would take noticeable memory, and small objects that stay keep the collector from freeing the pages between them.
 */
export class StagedColumn implements Column<StagedEntry> {
  #length = 0;
  /** Each row has the index of its part. A file of the context also has its index in the list and its mode. */
  #numbers = new Uint32Array(columns);
  #parts: Part[] = [];
  /** Indexes of the latest part of each kind: most rows have the same part as the row before. */
  #files = -1;
  #directory = -1;

  get length(): number {
    return this.#length;
  }

  at(row: number): StagedEntry {
    const at = row * columns;
    const part = this.#parts[this.#numbers[at] ?? 0];
    if (part === undefined) throw new Error(`nothing is staged in row ${row}`);
    if (part.type !== "files") return part;
    const index = this.#numbers[at + 1] ?? 0;
    return new ContextFile({ list: part.list, index }, this.#numbers[at + 2] ?? 0, part.owned);
  }

  push(entry: StagedEntry): void {
    const bytes = (this.#length + 1) * columns * Uint32Array.BYTES_PER_ELEMENT;
    if (bytes > this.#numbers.byteLength)
      this.#numbers = new Uint32Array(growBuffer(this.#numbers.buffer, bytes));
    this.set(this.#length++, entry);
  }

  set(row: number, entry: StagedEntry): void {
    const at = row * columns;
    this.#numbers[at] = this.#placeOf(entry);
    if (!(entry instanceof ContextFile)) return;
    this.#numbers[at + 1] = entry.index;
    this.#numbers[at + 2] = entry.mode;
  }

  copy(): StagedColumn {
    const copy = new StagedColumn();
    copy.#length = this.#length;
    copy.#numbers = this.#numbers.slice();
    copy.#parts = this.#parts.slice();
    return copy;
  }

  empty(): StagedColumn {
    return new StagedColumn();
  }

  #placeOf(entry: StagedEntry): number {
    if (entry instanceof ContextFile) {
      const { list, owned } = entry;
      const files = this.#parts[this.#files];
      if (files?.type !== "files" || files.list !== list || files.owned !== owned)
        this.#files = this.#add({ type: "files", list, owned });
      return this.#files;
    }
    if (entry.type !== "directory") return this.#add(entry);
    const directory = this.#parts[this.#directory];
    if (directory?.type !== "directory" || !isAlike(directory, entry)) this.#directory = this.#add(entry);
    return this.#directory;
  }

  #add(part: Part): number {
    return this.#parts.push(part) - 1;
  }
}

const columns = 3;

/** The part that a row refers to: the common values of files that one instruction takes from one list, or any other entry. */
type Part = { type: "files"; list: ContextFile["list"]; owned: ContextFile["owned"] } | StagedEntry;

function isAlike(one: StagedDirectory, other: StagedDirectory): boolean {
  return (
    one.isExplicit === other.isExplicit &&
    one.uid === other.uid &&
    one.gid === other.gid &&
    one.names === other.names &&
    one.mode === other.mode &&
    one.line === other.line &&
    one.mtime === other.mtime &&
    one.replaces === other.replaces &&
    one.attributes === other.attributes
  );
}
