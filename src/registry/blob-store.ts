import { BoughError } from "../errors.ts";
import { isDigest } from "../image/digest.ts";
import { type Descriptor, mediaTypes } from "../image/oci-layout.ts";
import { asInteger, asRecord, asText, parseRecord } from "../service/http/json.ts";

/** A manifest as its store returns it. `digest`: of `bytes`. */
export interface StoredManifest {
  digest: string;
  mediaType: string;
  bytes: Uint8Array;
}

/**
 * Keeps the manifests and blobs of one name: a repository of a registry, a directory, or a scope of GitHub's cache. Blobs are named by their digests
 * and never change. All methods throw a BoughError that names the store; those that read check digests and sizes.
 */
export interface BlobStore {
  /** Finds the store again: `docker://HOST/NAME`, `dir:/ABSOLUTE/PATH` or `gha:SCOPE@URL`, see `openBlobStore`. Has no credentials. */
  readonly address: string;
  /** The time between two writes of a command that goes on, which writes what it has in case it is killed. */
  readonly minWriteIntervalMilliseconds: number;
  /** @param reference a tag or a digest. Returns `undefined` if there is none. */
  getManifest(reference: string, signal: AbortSignal): Promise<StoredManifest | undefined>;
  /** Returns the digest of what a tag names now; `undefined` if there is none. Unlike a manifest, it counts as no pull. */
  findDigest(tag: string, signal: AbortSignal): Promise<string | undefined>;
  /** Throws a ManifestConflictError if the store can tell that somebody else has put another one since this one read it. */
  putManifest(
    reference: string,
    manifest: Pick<StoredManifest, "mediaType" | "bytes">,
    signal: AbortSignal,
  ): Promise<void>;
  removeManifest(reference: string, signal: AbortSignal): Promise<void>;
  hasBlob(blob: Pick<Descriptor, "digest">, signal: AbortSignal): Promise<boolean>;
  /**
   * The stream fails with a WrongBlobError, at its end, if the content does not have the digest and size. Throws a MissingBlobError
   * if there is none.
   *
   * @param checks `size` for a reader that compares the digest itself
   */
  openBlob(
    blob: Pick<Descriptor, "digest" | "size">,
    signal: AbortSignal,
    checks?: BlobChecks,
  ): Promise<AsyncIterable<Uint8Array>>;
  /** Returns a part of a blob, which the caller verifies; `undefined` if the store has no such blob or sends only whole ones. */
  readPart?(
    blob: Pick<Descriptor, "digest">,
    part: { start: number; size: number },
    signal: AbortSignal,
  ): Promise<Uint8Array | undefined>;
  /** Sends a blob that the store lacks. `open` may be called again for another attempt. */
  putBlob(
    blob: Pick<Descriptor, "digest" | "size">,
    open: () => AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<void>;
  /** Takes a blob from another repository of the same registry. Returns false if it can't. */
  mountBlob(blob: Pick<Descriptor, "digest">, from: string, signal: AbortSignal): Promise<boolean>;
  /** Keeps others of this machine that lock it from writing meanwhile. Resolves to `undefined` where that is not possible. */
  lock(signal: AbortSignal): Promise<Disposable | undefined>;
}

/** For a store in which a write costs little. */
export const cheapWriteIntervalMilliseconds = 15_000;

export type BlobChecks = "digest" | "size";

/** A store from which images are read. */
export type BlobSource = Pick<
  BlobStore,
  "address" | "getManifest" | "findDigest" | "hasBlob" | "openBlob" | "readPart"
>;

/** Returns the media type that a manifest gives itself. */
export function typeOfManifest(bytes: Uint8Array): string {
  return asText(parseRecord(bytes)?.mediaType) ?? mediaTypes.manifest;
}

/** Reads a descriptor in a manifest or an index, without its annotations. Returns `undefined` if it is damaged. */
export function parseDescriptor(value: unknown): Descriptor | undefined {
  const record = asRecord(value);
  const [mediaType, digest, size] = [asText(record?.mediaType), record?.digest, asInteger(record?.size)];
  return mediaType === undefined || !isDigest(digest) || size === undefined || size < 0
    ? undefined
    : { mediaType, digest, size };
}

/** A store does not have a blob, although a manifest or an index names it. */
export class MissingBlobError extends BoughError {
  override readonly name = "MissingBlobError";
}

/** Another writer has been faster: its manifest has to be read first, so that nothing of it is lost. */
export class ManifestConflictError extends BoughError {
  override readonly name = "ManifestConflictError";
}

/** What a store has of a blob does not have its digest or size. */
export class WrongBlobError extends BoughError {
  override readonly name = "WrongBlobError";
  /** True if it came from a mirror, which is not asked again: then another attempt may have the blob. */
  readonly isOfMirror: boolean;

  constructor(message: string, { isOfMirror = false } = {}) {
    super(message);
    this.isOfMirror = isOfMirror;
  }
}

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
