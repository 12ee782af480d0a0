/** Digests in OCI's form: `sha256:` and 64 hexadecimal digits. */
import { isSha256, sha256Of } from "../sha256.ts";

const prefix = "sha256:";

export function digestOf(content: string | Uint8Array): string {
  return `${prefix}${sha256Of(content)}`;
}

export function isDigest(value: unknown): value is string {
  return typeof value === "string" && value.startsWith(prefix) && isSha256(hexOf(value));
}

export function hexOf(digest: string): string {
  return digest.slice(prefix.length);
}

/** Returns the path of a blob in an image layout. */
export function blobPath(digest: string): string {
  return `blobs/sha256/${hexOf(digest)}`;
}
