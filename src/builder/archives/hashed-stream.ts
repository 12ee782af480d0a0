/** A stream that hashes all of its bytes, including those that the consumer leaves unread. */
export interface HashedStream extends AsyncIterable<Uint8Array>, AsyncDisposable {
  /** Reads the rest; returns the SHA-256 of the whole stream. */
  finish(): Promise<string>;
}

export function createHashedStream(source: AsyncIterable<Uint8Array>): HashedStream {
  const hasher = new Bun.CryptoHasher("sha256");
  const chunks = source[Symbol.asyncIterator]();
  const next = async () => {
    const result = await chunks.next();
    if (result.done !== true) hasher.update(result.value);
    return result;
  };
  return {
    // A consumer that stops early leaves the rest to `finish`.
    [Symbol.asyncIterator]: () => ({ next, return: async () => ({ done: true, value: undefined }) }),
    async finish() {
      for (let result = await next(); result.done !== true; ) result = await next();
      return hasher.digest("hex");
    },
    async [Symbol.asyncDispose]() {
      // An error while stopping in the middle does not matter.
      await chunks.return?.().catch(() => undefined);
    },
  };
}
