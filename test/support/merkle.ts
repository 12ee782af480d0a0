/** Trees of hashes: https://www.rfc-editor.org/rfc/rfc6962#section-2.1 */
import { createHash } from "node:crypto";

function hash(...parts: readonly Uint8Array[]): Buffer {
  const hasher = createHash("sha256");
  for (const part of parts) hasher.update(part);
  return hasher.digest();
}

export function merkleRoot(leaves: readonly Uint8Array[]): Buffer {
  const [leaf = Buffer.of()] = leaves;
  if (leaves.length < 2) return hash(Buffer.of(0), leaf);
  const split = splitOf(leaves.length);
  return hash(Buffer.of(1), merkleRoot(leaves.slice(0, split)), merkleRoot(leaves.slice(split)));
}

/** Returns the hashes that prove a leaf, from the lowest to the highest. */
export function merklePath(leaves: readonly Uint8Array[], index: number): Buffer[] {
  if (leaves.length < 2) return [];
  const split = splitOf(leaves.length);
  const [left, right] = [leaves.slice(0, split), leaves.slice(split)];
  return index < split
    ? [...merklePath(left, index), merkleRoot(right)]
    : [...merklePath(right, index - split), merkleRoot(left)];
}

/** The largest power of two below a size. */
function splitOf(size: number): number {
  return 2 ** Math.floor(Math.log2(size - 1));
}
