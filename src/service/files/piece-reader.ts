import type { Clock } from "../../clock.ts";

const pieceMilliseconds = 50;

export interface Read {
  done: boolean;
  piece: Uint8Array;
}

/**
 * Gathers a stream's chunks into larger pieces while they come fast: each piece has a fixed cost, and a network's chunks are
 * small. The stream gives up its chunks: each is emptied once its bytes are in a piece.
 */
export class PieceReader {
  readonly #reader: {
    read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
    cancel(): Promise<void>;
  };
  readonly #clock: Clock;
  /** A chunk that did not fit completely, and the number of its bytes that did. */
  #chunk: Uint8Array | undefined;
  #taken = 0;

  constructor(body: ReadableStream<Uint8Array>, clock: Clock) {
    this.#reader = body.getReader();
    this.#clock = clock;
  }

  /** Fills `buffer`, or part of it. `done` is true for the last piece. */
  async read(buffer: Uint8Array): Promise<Read> {
    let size = 0;
    let until = Number.POSITIVE_INFINITY;
    while (size < buffer.byteLength && this.#clock.now() < until) {
      this.#chunk ??= (await this.#reader.read()).value;
      if (this.#chunk === undefined) return { done: true, piece: buffer.subarray(0, size) };
      if (size === 0) until = this.#clock.now() + pieceMilliseconds;
      size += this.#take(this.#chunk, buffer.subarray(size));
    }
    return { done: false, piece: buffer.subarray(0, size) };
  }

  cancel(): void {
    this.#reader.cancel().catch(() => undefined);
  }

  #take(chunk: Uint8Array, room: Uint8Array): number {
    const size = Math.min(chunk.byteLength - this.#taken, room.byteLength);
    room.set(chunk.subarray(this.#taken, this.#taken + size));
    this.#taken += size;
    if (this.#taken === chunk.byteLength) {
      this.#chunk = undefined;
      this.#taken = 0;
      empty(chunk);
    }
    return size;
  }
}

/**
 * Frees the memory immediately. It is outside the collector's heap, which would notice late how large the chunks are: some 20 MiB
 * more.
 */
function empty({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
