/** Shows each chunk of a stream to `see` before it passes on. */
export async function* tap(
  chunks: AsyncIterable<Uint8Array>,
  see: (chunk: Uint8Array) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    see(chunk);
    yield chunk;
  }
}
