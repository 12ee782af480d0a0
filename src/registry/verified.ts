import type { Descriptor } from "../image/oci-layout.ts";
import { type BlobChecks, WrongBlobError } from "./blob-store.ts";

/** Passes a blob on. Throws a WrongBlobError if it is too long, or at its end if it does not have the size and the digest. */
export async function* verified(
  chunks: AsyncIterable<Uint8Array>,
  { digest, size }: Pick<Descriptor, "digest" | "size">,
  place: string,
  checks: BlobChecks = "digest",
): AsyncGenerator<Uint8Array> {
  const hash = new Bun.CryptoHasher("sha256");
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.byteLength;
    if (bytes > size) throw new WrongBlobError(`${place} has more than the ${size} bytes of ${digest}`);
    if (checks === "digest") hash.update(chunk);
    yield chunk;
  }
  if (bytes < size) throw new WrongBlobError(`${place} has ${bytes} of the ${size} bytes of ${digest}`);
  if (checks === "size") return;
  const actual = `sha256:${hash.digest("hex")}`;
  if (actual !== digest) throw new WrongBlobError(`${place} has the digest ${actual}, not ${digest}`);
}
