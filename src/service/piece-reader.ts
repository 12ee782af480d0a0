import type { Clock } from "../clock.ts";

const pieceMilliseconds = 50;

/**
 * Gathers a stream's chunks to pieces, as long as they come fast: passing on costs by the piece, and a network's chunks
 * are small.
 */
export class PieceReader {
  readonly #reader: {
    read(): Promise<{ done: boolean; value?: Uint8Array | undefined }>;
    cancel(): Promise<void>;
  };
  readonly #clock: Clock;
  /** Of a chunk that did not fit. */
  #rest: Uint8Array | undefined;

  constructor(body: ReadableStream<Uint8Array>, clock: Clock) {
    this.#reader = body.getReader();
    this.#clock = clock;
  }

  /** Fills `buffer`, or part of it; `done`: that was the last piece. */
  async read(buffer: Uint8Array): Promise<{ done: boolean; piece: Uint8Array }> {
    let size = 0;
    let until = Number.POSITIVE_INFINITY;
    while (size < buffer.byteLength && this.#clock.now() < until) {
      const chunk = this.#rest ?? (await this.#reader.read()).value;
      if (chunk === undefined) return { done: true, piece: buffer.subarray(0, size) };
      if (size === 0) until = this.#clock.now() + pieceMilliseconds;
      const room = buffer.byteLength - size;
      buffer.set(chunk.byteLength > room ? chunk.subarray(0, room) : chunk, size);
      this.#rest = chunk.byteLength > room ? chunk.subarray(room) : undefined;
      size += Math.min(chunk.byteLength, room);
    }
    return { done: false, piece: buffer.subarray(0, size) };
  }

  cancel(): void {
    this.#reader.cancel().catch(() => undefined);
  }
}
