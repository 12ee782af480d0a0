import { BoughError } from "../../errors.ts";
import { decompress, detectLayerCompression, peekBeginning } from "../../image/compression.ts";

/** Thrown if the content of a blob is not that of the layer for which it was declared. */
export class ForgedBlobError extends BoughError {
  override readonly name = "ForgedBlobError";
}

interface DeclaredContent {
  diffId: string;
  /** The layer's name for messages. */
  name: string;
  /** The maximum size of the content. */
  maxBytes: number;
}

/**
 * Passes on the blob of a layer whose content has never been verified. If the content does not have the DiffID, throws a ForgedBlobError
 * in place of the stream's end: nothing else would notice that the blob that is sent does not fit the image's configuration.
 */
export async function* checkContent(
  chunks: AsyncIterable<Uint8Array>,
  layer: DeclaredContent,
): AsyncGenerator<Uint8Array> {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const found = digestOfContent(readable, layer);
  found.catch(() => undefined);
  const writer = writable.getWriter();
  try {
    for await (const chunk of chunks) {
      // The chunk is copied, since its memory may be used for the next one. If the content can't be read, `found` rejects.
      await Promise.race([found, writer.write(new Uint8Array(chunk)).catch(() => found)]);
      yield chunk;
    }
    await Promise.race([found, writer.close().catch(() => found)]);
    const actual = await found;
    if (actual !== layer.diffId)
      throw new ForgedBlobError(`the content of ${layer.name} has the digest ${actual}, not ${layer.diffId}`);
  } finally {
    writer.abort().catch(() => undefined);
  }
}

async function digestOfContent(
  blob: AsyncIterable<Uint8Array>,
  { name, maxBytes }: DeclaredContent,
): Promise<string> {
  const { bytes, beginning } = await peekBeginning(blob);
  const hash = new Bun.CryptoHasher("sha256");
  let size = 0;
  for await (const chunk of decompress(bytes, detectLayerCompression(beginning, name), name)) {
    size += chunk.byteLength;
    if (size > maxBytes) throw new BoughError(`${name} has more than ${maxBytes} bytes`);
    hash.update(chunk);
  }
  return `sha256:${hash.digest("hex")}`;
}
