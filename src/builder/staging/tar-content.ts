import type { TarEntry } from "../../image/tar-reader.ts";

/** A file's bytes as they are read, its holes filled. They are the reader's own: nothing else holds them. */
export async function* contentOf({ size, pieces }: TarEntry): AsyncGenerator<Uint8Array> {
  let at = 0;
  for await (const { offset, bytes } of pieces()) {
    yield* zeros(offset - at);
    at = offset + bytes.byteLength;
    yield bytes;
  }
  yield* zeros(size - at);
}

export function streamOf(chunks: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

const zeroBytes = 256 * 1024;

function* zeros(length: number): Generator<Uint8Array> {
  for (let left = length; left > 0; left -= zeroBytes) yield new Uint8Array(Math.min(left, zeroBytes));
}
