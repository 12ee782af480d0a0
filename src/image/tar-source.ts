/** Bytes in portions of any size. */

/** A stream of bytes. */
export interface ByteSource extends AsyncIterable<Uint8Array> {
  /** Leaves out the next bytes without reading them, if the stream can. Returns false if it ends before them. */
  skip?(bytes: number): boolean;
}

/** A stream that is read in portions of requested sizes. */
export interface TarSource {
  /** Returns exactly `length` bytes; `undefined` if the stream ends first. */
  take(length: number): Promise<Uint8Array | undefined>;
  /** Yields exactly `length` bytes in the stream's chunks. Rejects if the stream ends first. */
  pass(length: number): AsyncGenerator<Uint8Array>;
  /** Passes over `length` bytes. Returns false if the stream ends first. */
  skip(length: number): Promise<boolean>;
  /** Returns the number of bytes so far, read or passed over. */
  position(): number;
  /** Abandons the rest of the stream, which closes its source. */
  close(): Promise<void>;
}

export class EndOfStreamError extends Error {
  override readonly name = "EndOfStreamError";
}

export function createTarSource(stream: ByteSource): TarSource {
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

  async function skip(length: number): Promise<boolean> {
    let left = length - Math.min(length, rest.byteLength);
    position += length - left;
    rest = rest.subarray(length - left);
    if (left > 0 && stream.skip !== undefined) {
      position += left;
      return stream.skip(left);
    }
    while (left > 0) {
      const part = await next(left);
      if (part.byteLength === 0) return false;
      left -= part.byteLength;
    }
    return true;
  }

  return {
    pass,
    skip,
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
