/** Passes a stream on, and calls `onChunk` with each chunk first. */
export async function* tap(
  chunks: AsyncIterable<Uint8Array>,
  onChunk: (chunk: Uint8Array) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    onChunk(chunk);
    yield chunk;
  }
}

/**
 * Returns a stream that takes chunks on demand. `onEnd` is called when they have ended or failed, and before they are closed if the
 * stream is cancelled.
 */
export function streamOf(
  chunks: AsyncIterable<Uint8Array>,
  onEnd: () => void = () => {},
): ReadableStream<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const next = await iterator.next().catch((error: unknown) => {
          onEnd();
          throw error;
        });
        if (next.done !== true) return controller.enqueue(next.value);
        onEnd();
        controller.close();
      },
      async cancel() {
        onEnd();
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

/**
 * Cancels a reader when the signal is aborted, so that its pending read ends: unlike a socket's body, one from a handler in this
 * process knows nothing of a request's signal. Dispose of the result when the stream has been read.
 */
export function cancelOnAbort(
  reader: Pick<ReadableStreamDefaultReader, "cancel">,
  signal: AbortSignal,
): Disposable {
  const cancel = () => void reader.cancel(signal.reason).catch(() => undefined);
  if (signal.aborted) cancel();
  else signal.addEventListener("abort", cancel, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener("abort", cancel) };
}

/** Reads chunks, and stops after more than `maxBytes`, when `isWhole` is false. */
export async function readAtMost(
  maxBytes: number,
  chunks: AsyncIterable<Uint8Array>,
): Promise<{ bytes: Buffer; isWhole: boolean }> {
  const read: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    // The stream may reuse the chunk's memory for the next one. A Buffer's slice() would not copy it.
    read.push(Buffer.from(chunk));
    size += chunk.byteLength;
    if (size > maxBytes) break;
  }
  return { bytes: Buffer.concat(read), isWhole: size <= maxBytes };
}

/** Returns bytes as a stream of one chunk. */
export async function* inOneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
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
