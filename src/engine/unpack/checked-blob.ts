import { BoughError } from "../../errors.ts";
import { decompress, detectLayerCompression, peekBeginning } from "../../image/compression.ts";

/** The content of a blob is not that of the layer for which it was declared. */
export class ForgedBlobError extends BoughError {
  override readonly name = "ForgedBlobError";
}

interface Layer {
  diffId: string;
  /** For messages. */
  name: string;
  /** The size limit of the content. */
  maxBytes: number;
}

/**
 * Passes the blob of a layer on whose content nobody has seen yet. Throws a ForgedBlobError at its end, and does not end, if the content
 * does not have the DiffID: nothing else would notice that what is sent elsewhere fits no configuration.
 */
export async function* checkContent(
  chunks: AsyncIterable<Uint8Array>,
  layer: Layer,
): AsyncGenerator<Uint8Array> {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const found = digestOfContent(readable, layer);
  found.catch(() => undefined);
  const writer = writable.getWriter();
  try {
    for await (const chunk of chunks) {
      // A copy: the memory may be used for the next chunk. Content that can't be read ends the transfer: nothing takes the next chunk then.
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

async function digestOfContent(blob: AsyncIterable<Uint8Array>, { name, maxBytes }: Layer): Promise<string> {
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
