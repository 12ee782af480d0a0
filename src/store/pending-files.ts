import { FileColumns, type FileState } from "./file-columns.ts";

/** Files in the order in which they came. A path that comes again has a new row, and that one is found. */
export class PendingFiles {
  readonly columns = new FileColumns();
  /**
   * A hash table of rows by path, open addressing: a map of strings would take several times as much. Each slot is the path's hash
   * and its row, counted from 1; 0 is free.
   */
  #slots = new Uint32Array(firstSlots * slotNumbers);
  readonly #replaced = new Set<number>();

  add(path: string, state: FileState, sha256: string): void {
    this.#index(path, this.columns.add(path, state, sha256));
  }

  find(path: string): number | undefined {
    const row = this.#slots[this.#slotOf(path, Bun.hash.xxHash32(path)) + 1] ?? 0;
    return row === 0 ? undefined : row - 1;
  }

  /** False where the path has come again since. */
  isLatest(row: number): boolean {
    return !this.#replaced.has(row);
  }

  /** All but the first `count`. */
  after(count: number): PendingFiles {
    const rest = new PendingFiles();
    for (let row = count; row < this.columns.length; row++)
      rest.#index(this.columns.pathAt(row), rest.columns.copy(this.columns, row));
    return rest;
  }

  #index(path: string, row: number): void {
    if (row * slotNumbers * 2 >= this.#slots.length) this.#grow();
    const hash = Bun.hash.xxHash32(path);
    const slot = this.#slotOf(path, hash);
    const before = this.#slots[slot + 1] ?? 0;
    if (before !== 0) this.#replaced.add(before - 1);
    this.#slots[slot] = hash;
    this.#slots[slot + 1] = row + 1;
  }

  /** Where the path is, or would be. */
  #slotOf(path: string, hash: number): number {
    const slots = this.#slots;
    for (let slot = firstSlot(hash, slots); ; slot = nextSlot(slot, slots)) {
      const row = slots[slot + 1] ?? 0;
      if (row === 0 || (slots[slot] === hash && this.columns.pathAt(row - 1) === path)) return slot;
    }
  }

  #grow(): void {
    const grown = new Uint32Array(this.#slots.length * 2);
    for (let from = 0; from < this.#slots.length; from += slotNumbers) {
      const [hash = 0, row = 0] = this.#slots.subarray(from, from + slotNumbers);
      if (row === 0) continue;
      let to = firstSlot(hash, grown);
      while (grown[to + 1] !== 0) to = nextSlot(to, grown);
      grown.set([hash, row], to);
    }
    this.#slots = grown;
  }
}

const slotNumbers = 2;
/** A power of two, and so is every later number. */
const firstSlots = 64;

function firstSlot(hash: number, slots: Uint32Array): number {
  return (hash << 1) & (slots.length - 1);
}

function nextSlot(slot: number, slots: Uint32Array): number {
  return (slot + slotNumbers) & (slots.length - 1);
}
