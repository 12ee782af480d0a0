/** A stream that is read in portions of requested sizes. */
export interface TarSource {
  /** Returns exactly `length` bytes; `undefined` if the stream ends first. */
  take(length: number): Promise<Uint8Array | undefined>;
  /** Yields exactly `length` bytes in the stream's chunks. Rejects if the stream ends first. */
  pass(length: number): AsyncGenerator<Uint8Array>;
  /** Returns the number of bytes read so far. */
  position(): number;
  /** Abandons the rest of the stream, which closes its source. */
  close(): Promise<void>;
}

export class EndOfStreamError extends Error {
  override readonly name = "EndOfStreamError";
}

export function createTarSource(stream: AsyncIterable<Uint8Array>): TarSource {
  const chunks = stream[Symbol.asyncIterator]();
  let rest: Uint8Array = new Uint8Array();
  let position = 0;

  /** Returns at most `length` bytes; an empty array at the end. */
  async function next(length: number): Promise<Uint8Array> {
    while (rest.byteLength === 0) {
      const { done, value } = await chunks.next();
      if (done === true) return rest;
      rest = value;
    }
    const part = rest.subarray(0, length);
    rest = rest.subarray(part.byteLength);
    position += part.byteLength;
    return part;
  }

  async function* pass(length: number): AsyncGenerator<Uint8Array> {
    for (let left = length; left > 0; ) {
      const part = await next(left);
      if (part.byteLength === 0) throw new EndOfStreamError("the stream ended early");
      left -= part.byteLength;
      yield part;
    }
  }

  return {
    pass,
    position: () => position,
    close: async () => void (await chunks.return?.()),
    async take(length) {
      const parts: Uint8Array[] = [];
      try {
        for await (const part of pass(length)) parts.push(part);
      } catch (error) {
        if (error instanceof EndOfStreamError) return undefined;
        throw error;
      }
      return Buffer.concat(parts);
    },
  };
}
