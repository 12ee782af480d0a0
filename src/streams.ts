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

/** Takes chunks as they are asked for. `onCancel` is called before the chunks are left. */
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

/** Reads no more once there are more than `maxBytes`: then it is not whole. */
export async function readAtMost(
  maxBytes: number,
  chunks: AsyncIterable<Uint8Array>,
): Promise<{ bytes: Buffer; isWhole: boolean }> {
  const read: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    // Bun may take the chunk's memory again.
    read.push(chunk.slice());
    size += chunk.byteLength;
    if (size > maxBytes) break;
  }
  return { bytes: Buffer.concat(read), isWhole: size <= maxBytes };
}
