/** Passes a stream on, and calls `see` with each chunk first. */
export async function* tap(
  chunks: AsyncIterable<Uint8Array>,
  see: (chunk: Uint8Array) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    see(chunk);
    yield chunk;
  }
}

/** Returns a stream that takes chunks on demand. If it is cancelled, `onCancel` is called before the chunks are closed. */
export function streamOf(
  chunks: AsyncGenerator<Uint8Array>,
  onCancel: () => void = () => {},
): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        onCancel();
        await chunks.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

/** Reads chunks, and stops after more than `maxBytes`, when `isWhole` is false. */
export async function readAtMost(
  maxBytes: number,
  chunks: AsyncIterable<Uint8Array>,
): Promise<{ bytes: Buffer; isWhole: boolean }> {
  const read: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    // Bun may reuse the chunk's memory.
    read.push(chunk.slice());
    size += chunk.byteLength;
    if (size > maxBytes) break;
  }
  return { bytes: Buffer.concat(read), isWhole: size <= maxBytes };
}

/** Yields lines of text without their ends; at the end of the stream, an unfinished line. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of chunks) {
    const [rest = "", ...lines] = decoder.decode(chunk, { stream: true }).split("\n");
    text += rest;
    for (const line of lines) {
      yield text;
      text = line;
    }
  }
  text += decoder.decode();
  if (text !== "") yield text;
}
