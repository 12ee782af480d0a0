import { TextColumn } from "./text-column.ts";
import { TextIndex } from "./text-index.ts";

/** Values by row, from 0. */
export interface Column<Value> {
  readonly length: number;
  at(row: number): Value;
  push(value: Value): void;
  set(row: number, value: Value): void;
  copy(): Column<Value>;
  /** Returns an empty column of the same kind. */
  empty(): Column<Value>;
}

/** A map whose keys take a fraction of a plain map's memory: a string is made each time a key is read. */
export class TextMap<Value> implements ReadonlyMap<string, Value> {
  readonly #values: Column<Value>;
  #keys = new TextColumn();
  #rows = new TextIndex(this.#keys);

  /** `values`: an empty column, which belongs to the map afterwards. */
  constructor(values: Column<Value>) {
    this.#values = values;
  }

  get size(): number {
    return this.#values.length;
  }

  get(key: string): Value | undefined {
    const row = this.#rows.find(key.toWellFormed());
    return row === undefined ? undefined : this.#values.at(row);
  }

  has(key: string): boolean {
    return this.#rows.find(key.toWellFormed()) !== undefined;
  }

  set(key: string, value: Value): void {
    // The column stores well-formed text.
    const text = key.toWellFormed();
    const row = this.#rows.find(text);
    if (row !== undefined) this.#values.set(row, value);
    else {
      this.#rows.set(text, this.#keys.push(text));
      this.#values.push(value);
    }
  }

  copy(): TextMap<Value> {
    const copy = new TextMap(this.#values.copy());
    copy.#keys = this.#keys.copy();
    copy.#rows = this.#rows.copy(copy.#keys);
    return copy;
  }

  /** Returns an empty map of the same kind. */
  empty(): TextMap<Value> {
    return new TextMap(this.#values.empty());
  }

  keys(): MapIterator<string> {
    return this.#keys[Symbol.iterator]();
  }

  *values(): MapIterator<Value> {
    for (let row = 0; row < this.size; row++) yield this.#values.at(row);
  }

  *entries(): MapIterator<[string, Value]> {
    for (let row = 0; row < this.size; row++) yield [this.#keys.at(row), this.#values.at(row)];
  }

  [Symbol.iterator](): MapIterator<[string, Value]> {
    return this.entries();
  }

  forEach(action: (value: Value, key: string, map: ReadonlyMap<string, Value>) => void): void {
    for (let row = 0; row < this.size; row++) action(this.#values.at(row), this.#keys.at(row), this);
  }
}
