/** Returns the first bytes of a stream, by which its compression is detected, and the whole stream. */
export async function peek(
  content: AsyncIterable<Uint8Array>,
): Promise<{ bytes: AsyncIterable<Uint8Array>; beginning: Uint8Array }> {
  const chunks = content[Symbol.asyncIterator]();
  const { value: first = new Uint8Array() } = await chunks.next();
  const bytes = (async function* () {
    yield first;
    yield* { [Symbol.asyncIterator]: () => chunks };
  })();
  return { bytes, beginning: first.subarray(0, 8) };
}
