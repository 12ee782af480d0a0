import { digestBytes } from "../records/layer-file-digests.ts";
import type { Path } from "../system/path.ts";
import type { PlacedFile } from "./file-spec.ts";

/** A version of a layer, with the digests of the files that it was made of. */
export interface EarlierLayer {
  id: number;
  directory: string;
  digests: Uint8Array;
}

/** The minimum number of files for which digests are kept: fewer are copied in no noticeable time. */
const minFiles = 1_000;

/**
 * Digests of the files of a layer: each covers a file's path, content, owner, mode and time, all of which a hard link to a file
 * with the same digest has, too.
 */
export class FileDigests {
  readonly #earlier: (EarlierLayer & { index: DigestIndex }) | undefined;
  #digests = Buffer.alloc(minFiles * digestBytes);
  #length = 0;
  /** The bytes of all files; `undefined` if they can't be known from here. */
  #bytes: number | undefined = 0;
  #isValid = true;

  constructor(earlier: EarlierLayer | undefined) {
    this.#earlier = earlier && { ...earlier, index: new DigestIndex(earlier.digests) };
  }

  /**
   * Adds the file that is put at `inside`, its real path in the image. Returns the path of the same file in the earlier version;
   * `undefined` if there is none.
   */
  add(inside: string, file: PlacedFile): Path | undefined {
    const digest = digestOf(inside, file);
    // The bytes of a file with several names are unknown: the file system may not allow as many hard links, and some become copies.
    const isOne = file.links === undefined || file.links.length === 0;
    this.#bytes = this.#bytes === undefined || !isOne ? undefined : this.#bytes + file.size;
    if (digest === undefined) return undefined;
    if (this.#length === this.#digests.length)
      this.#digests = Buffer.concat([this.#digests, Buffer.alloc(this.#length)]);
    this.#digests.set(digest, this.#length);
    this.#length += digestBytes;
    return this.#earlier?.index.has(digest) ? this.#earlier.directory + inside : undefined;
  }

  /** Call it if a file may have been put in the place of another one. */
  invalidate(): void {
    this.#isValid = false;
    this.#bytes = undefined;
  }

  /** Returns the bytes of all files that were added, if they are known. */
  bytes(): number | undefined {
    return this.#bytes;
  }

  /** Returns the digests of all files that were added; `undefined` if they are few, or if some may be wrong. */
  digests(): Uint8Array | undefined {
    return !this.#isValid || this.#length < minFiles * digestBytes
      ? undefined
      : this.#digests.subarray(0, this.#length);
  }
}

/** Returns a file's digest; `undefined` for one with further names or attributes, which are rare, or without a time of its own. */
function digestOf(
  inside: string,
  { sha256, size, uid, gid, mode, mtime, links, attributes }: PlacedFile,
): Uint8Array | undefined {
  if (mtime === undefined || attributes !== undefined || (links !== undefined && links.length > 0))
    return undefined;
  const text = `${sha256} ${size} ${uid} ${gid} ${mode} ${mtime} ${inside}`;
  return Bun.CryptoHasher.hash("sha256", text).subarray(0, digestBytes);
}

/** A set of digests, without an object for each: a hash table whose slots have positions in `digests`, plus one. */
class DigestIndex {
  readonly #digests: Buffer;
  readonly #slots: Uint32Array;

  constructor(digests: Uint8Array) {
    this.#digests = Buffer.from(digests.buffer, digests.byteOffset, digests.byteLength);
    const count = digests.byteLength / digestBytes;
    this.#slots = new Uint32Array(2 ** Math.ceil(Math.log2(2 * count + 1)));
    for (let at = 0; at < this.#digests.length; at += digestBytes) {
      let slot = this.#slotOf(this.#digests, at);
      while (this.#slots[slot] !== 0) slot = (slot + 1) % this.#slots.length;
      this.#slots[slot] = at + 1;
    }
  }

  has(digest: Uint8Array): boolean {
    for (let slot = this.#slotOf(digest, 0); ; slot = (slot + 1) % this.#slots.length) {
      const position = this.#slots[slot] ?? 0;
      if (position === 0) return false;
      const at = position - 1;
      if (this.#digests.compare(digest, 0, digestBytes, at, at + digestBytes) === 0) return true;
    }
  }

  /** Returns the slot of a digest by its first bytes, which are evenly distributed. */
  #slotOf(bytes: Uint8Array, at: number): number {
    const number = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    return (number * 256 + (bytes[at + 3] ?? 0)) % this.#slots.length;
  }
}
