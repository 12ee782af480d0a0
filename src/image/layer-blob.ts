import { tap } from "../streams.ts";
import type { Compressor } from "./compress.ts";
import { type Descriptor, layerMediaType } from "./oci-layout.ts";

/** A stored layer, with the digest of its uncompressed content. */
export interface LayerBlob extends Descriptor {
  /** `sha256:` and 64 hexadecimal digits. */
  diffId: string;
}

/** Writes a layer's archive with compression, and returns its descriptor. */
export async function writeLayerBlob(
  archive: AsyncIterable<Uint8Array>,
  { compression, compress }: Pick<Compressor, "compression" | "compress">,
  write: (bytes: Uint8Array) => void,
): Promise<LayerBlob> {
  const content = new Bun.CryptoHasher("sha256");
  const stored = new Bun.CryptoHasher("sha256");
  let size = 0;
  for await (const bytes of compress(tap(archive, (chunk) => content.update(chunk)))) {
    stored.update(bytes);
    size += bytes.byteLength;
    write(bytes);
  }
  return {
    mediaType: layerMediaType(compression),
    digest: `sha256:${stored.digest("hex")}`,
    size,
    diffId: `sha256:${content.digest("hex")}`,
  };
}
