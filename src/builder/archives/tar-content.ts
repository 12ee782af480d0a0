import type { TarEntry } from "../../image/tar-reader.ts";

/** Yields a file's bytes as they are read, with zeros for its holes. The chunks belong to the caller: nothing else keeps them. */
export async function* contentOf({ size, pieces }: TarEntry): AsyncGenerator<Uint8Array> {
  let at = 0;
  for await (const { offset, bytes } of pieces()) {
    yield* zeros(offset - at);
    at = offset + bytes.byteLength;
    yield bytes;
  }
  yield* zeros(size - at);
}

/**
 * Yields what `read` makes of an archive's entries. Stops reading when the caller does: a service might send an endless archive.
 */
export async function* entriesOf<Entry>(
  stream: ReadableStream<Uint8Array>,
  read: (chunks: AsyncIterable<Uint8Array>) => AsyncIterable<Entry>,
): AsyncGenerator<Entry> {
  const reader = stream.getReader();
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  }
  try {
    yield* read(chunks());
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

const zeroBytes = 256 * 1024;

function* zeros(length: number): Generator<Uint8Array> {
  for (let left = length; left > 0; left -= zeroBytes) yield new Uint8Array(Math.min(left, zeroBytes));
}
