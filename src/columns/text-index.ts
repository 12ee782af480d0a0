import type { TextColumn } from "./text-column.ts";

/**
 * Finds rows of a column by their texts: a hash table with open addressing. A map of strings would take several times as much
 * memory.
 */
export class TextIndex {
  readonly #texts: TextColumn;
  /** Each slot is a text's hash and its row, counted from 1; row 0 marks a free slot. */
  #slots = new Uint32Array(firstSlots * slotNumbers);
  #count = 0;

  constructor(texts: TextColumn) {
    this.#texts = texts;
  }

  find(text: string): number | undefined {
    const row = this.#slots[this.#slotOf(text, Bun.hash.xxHash32(text)) + 1] ?? 0;
    return row === 0 ? undefined : row - 1;
  }

  /** Sets the row that is found for a text. Returns the previous one. */
  set(text: string, row: number): number | undefined {
    if (this.#count * slotNumbers * 2 >= this.#slots.length) this.#grow();
    const hash = Bun.hash.xxHash32(text);
    const slot = this.#slotOf(text, hash);
    const before = this.#slots[slot + 1] ?? 0;
    this.#slots[slot] = hash;
    this.#slots[slot + 1] = row + 1;
    if (before !== 0) return before - 1;
    this.#count += 1;
    return undefined;
  }

  /** Returns the same index for a copy of the column. */
  copy(texts: TextColumn): TextIndex {
    const copy = new TextIndex(texts);
    copy.#slots = this.#slots.slice();
    copy.#count = this.#count;
    return copy;
  }

  /** Returns the slot of a text, or the free slot for it. */
  #slotOf(text: string, hash: number): number {
    const slots = this.#slots;
    for (let slot = firstSlot(hash, slots); ; slot = nextSlot(slot, slots)) {
      const row = slots[slot + 1] ?? 0;
      if (row === 0 || (slots[slot] === hash && this.#texts.at(row - 1) === text)) return slot;
    }
  }

  #grow(): void {
    const slots = this.#slots;
    const grown = new Uint32Array(slots.length * 2);
    for (let from = 0; from < slots.length; from += slotNumbers) {
      const [hash, row] = [slots[from] ?? 0, slots[from + 1] ?? 0];
      if (row === 0) continue;
      let to = firstSlot(hash, grown);
      while (grown[to + 1] !== 0) to = nextSlot(to, grown);
      grown[to] = hash;
      grown[to + 1] = row;
    }
    this.#slots = grown;
  }
}

const slotNumbers = 2;
/** A power of two, as every later number of slots. */
const firstSlots = 16;

function firstSlot(hash: number, slots: Uint32Array): number {
  return (hash << 1) & (slots.length - 1);
}

function nextSlot(slot: number, slots: Uint32Array): number {
  return (slot + slotNumbers) & (slots.length - 1);
}
