/** A list of texts in one UTF-8 buffer, which takes much less memory than strings if there are very many. */
export class TextColumn implements Iterable<string> {
  #bytes = noBytes;
  /** The end of each text in `#bytes`. */
  #ends = emptyEnds;
  /** The number of texts in `#bytes`. */
  #written = 0;
  /** The latest texts, which are written together, since a call for each would be slow. */
  #latest: string[] = [];

  static of(texts: Iterable<string>): TextColumn {
    const column = new TextColumn();
    for (const text of texts) column.push(text);
    return column;
  }

  get length(): number {
    return this.#written + this.#latest.length;
  }

  /** All texts, with nothing between them. */
  get bytes(): Uint8Array {
    this.#write();
    return this.#bytes.subarray(0, this.#startOf(this.#written));
  }

  /** The end of each text in `bytes`. */
  get ends(): Uint32Array {
    this.#write();
    return this.#ends.subarray(0, this.#written);
  }

  /** Adds the texts to a hash. The result is the same only for columns of the same texts. */
  addTo(hasher: Bun.CryptoHasher): void {
    // There are very many lists with only one entry.
    if (this.length <= batchTexts) hasher.update(JSON.stringify([...this]));
    else hasher.update(this.ends).update(this.bytes);
  }

  at(row: number): string {
    if (row >= this.#written) return this.#latest[row - this.#written] ?? "";
    return this.#bytes.toString("utf8", this.#startOf(row), this.#startOf(row + 1));
  }

  /** Returns the texts from row `start` to before `end`, at most to the last one. */
  slice(start: number, end: number): string[] {
    return Array.from({ length: Math.min(end, this.length) - start }, (_, index) => this.at(start + index));
  }

  *[Symbol.iterator](): Generator<string, undefined> {
    for (let row = 0; row < this.length; row++) yield this.at(row);
  }

  /** Adds a text, and returns its row. Lone surrogates, which UTF-8 does not have, become replacement characters. */
  push(text: string): number {
    if (this.#latest.length === batchTexts) this.#write();
    return this.#written + this.#latest.push(text) - 1;
  }

  /** Adds a text of another column. Returns its row here. */
  pushFrom(from: TextColumn, row: number): number {
    this.#write();
    from.#write();
    const [first, last] = [from.#startOf(row), from.#startOf(row + 1)];
    const start = this.#reserve(1, last - first);
    from.#bytes.copy(this.#bytes, start, first, last);
    this.#ends[this.#written] = start + last - first;
    return this.#written++;
  }

  /** Adds texts in the form of `bytes`, with the length of each in bytes. */
  append(bytes: Uint8Array, lengths: Uint32Array): void {
    this.#write();
    let end = this.#reserve(lengths.length, bytes.length);
    this.#bytes.set(bytes, end);
    const all = end + bytes.length;
    for (const length of lengths) {
      end += length;
      this.#ends[this.#written++] = end;
    }
    if (end !== all) throw new Error("the lengths of the texts do not match their bytes");
  }

  clear(): void {
    this.#written = 0;
    this.#latest = [];
  }

  #write(): void {
    if (this.#latest.length === 0) return;
    const joined = this.#latest.join("");
    let end = this.#reserve(this.#latest.length, joined.length * maxBytesOfUnit);
    const isAscii = this.#bytes.write(joined, end) === joined.length;
    for (const text of this.#latest) {
      end += isAscii ? text.length : this.#bytes.write(text, end);
      this.#ends[this.#written++] = end;
    }
    this.#latest = [];
  }

  #startOf(row: number): number {
    return row === 0 ? 0 : (this.#ends[row - 1] ?? 0);
  }

  /** Makes space for more texts of at most `bytes` in total. Returns their offset. */
  #reserve(texts: number, bytes: number): number {
    const start = this.#startOf(this.#written);
    if (start + bytes > this.#bytes.length)
      this.#bytes = Buffer.from(growBuffer(this.#bytes.buffer, start + bytes));
    const ends = (this.#written + texts) * Uint32Array.BYTES_PER_ELEMENT;
    if (ends > this.#ends.byteLength) this.#ends = new Uint32Array(growBuffer(this.#ends.buffer, ends));
    return start;
  }
}

/** Returns the length of each text in bytes, from the ends. */
export function lengthsOf(ends: Uint32Array): Uint32Array {
  return ends.map((end, row) => end - (ends[row - 1] ?? 0));
}

const noBytes = Buffer.alloc(0);
const emptyEnds = new Uint32Array();
const batchTexts = 1000;
/** The maximum length in UTF-8 of a UTF-16 code unit. */
const maxBytesOfUnit = 3;

/**
 * Returns a longer buffer with the same content, of at least `bytes`. The old one is freed at once: the garbage collector notices
 * the memory of buffers too late.
 */
export function growBuffer(buffer: ArrayBufferLike, bytes: number): ArrayBuffer {
  // Empty columns share one buffer.
  if (buffer.byteLength === 0) return new ArrayBuffer(Math.max(bytes, firstBytes));
  const half = Math.ceil(buffer.byteLength / 2 / largestNumber) * largestNumber;
  return (buffer as ArrayBuffer).transfer(Math.max(bytes, buffer.byteLength + half));
}

const firstBytes = 64;
/** A buffer's length must be a multiple of every number's size. */
const largestNumber = Float64Array.BYTES_PER_ELEMENT;
