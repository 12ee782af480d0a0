/** Bytes that are hashed as they pass, those that nobody has asked for included. */
export interface HashedStream extends AsyncIterable<Uint8Array>, AsyncDisposable {
  /** Reads what is left; returns the SHA-256 of all. */
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
    // Whoever has what it needs leaves the rest to `finish`.
    [Symbol.asyncIterator]: () => ({ next, return: async () => ({ done: true, value: undefined }) }),
    async finish() {
      for (let result = await next(); result.done !== true; ) result = await next();
      return hasher.digest("hex");
    },
    async [Symbol.asyncDispose]() {
      // That it is left in the middle is no news.
      await chunks.return?.().catch(() => undefined);
    },
  };
}
