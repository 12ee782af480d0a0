import { parseRecord } from "../service/http/json.ts";
import { readAtMost } from "../streams.ts";
import { type BlobSource, parseDescriptor, type StoredManifest } from "./blob-store.ts";

/** The size limit of a configuration, the same as for imports. */
const maxConfigBytes = 8 * 1024 * 1024;

/** Reads the configuration of an image. Returns `undefined` if the manifest names none, or one that is too large. */
export async function readImageConfig(
  manifest: Pick<StoredManifest, "bytes">,
  store: Pick<BlobSource, "openBlob">,
  signal: AbortSignal,
): Promise<{ digest: string; bytes: Buffer } | undefined> {
  const descriptor = parseDescriptor(parseRecord(manifest.bytes)?.config);
  if (descriptor === undefined || descriptor.size > maxConfigBytes) return undefined;
  const { bytes } = await readAtMost(maxConfigBytes, await store.openBlob(descriptor, signal));
  return { digest: descriptor.digest, bytes };
}
