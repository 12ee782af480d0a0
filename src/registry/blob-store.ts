import { BoughError } from "../errors.ts";
import { isDigest } from "../image/digest.ts";
import { type Descriptor, mediaTypes } from "../image/oci-layout.ts";
import { asInteger, asRecord, asText, parseRecord } from "../service/http/json.ts";

/** A manifest as its store returns it, with the digest of its bytes. */
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
  /** The address for `openBlobStore`: `docker://HOST/NAME`, `dir:/ABSOLUTE/PATH` or `gha:SCOPE@URL`. It contains no credentials. */
  readonly address: string;
  /** The minimum time between two writes of a running command, which stores its progress in case it is killed. */
  readonly minWriteIntervalMilliseconds: number;
  /** @param reference a tag or a digest. Returns `undefined` if there is none. */
  getManifest(reference: string, signal: AbortSignal): Promise<StoredManifest | undefined>;
  /** Returns the digest that a tag names; `undefined` if there is none. Registries don't count this as a pull. */
  findDigest(tag: string, signal: AbortSignal): Promise<string | undefined>;
  /** Throws a ManifestConflictError if the store can tell that another writer has replaced the manifest since it was read. */
  putManifest(
    reference: string,
    manifest: Pick<StoredManifest, "mediaType" | "bytes">,
    signal: AbortSignal,
  ): Promise<void>;
  removeManifest(reference: string, signal: AbortSignal): Promise<void>;
  hasBlob(blob: Pick<Descriptor, "digest">, signal: AbortSignal): Promise<boolean>;
  /**
   * Opens a blob as a stream, which fails with a WrongBlobError at its end if the content does not have the digest and size. Throws a
   * MissingBlobError if the store lacks the blob.
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
  /** Stores a blob. `open` may be called again for another attempt. */
  putBlob(
    blob: Pick<Descriptor, "digest" | "size">,
    open: () => AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<void>;
  /** Mounts a blob of another repository of the same registry. Returns false if the registry can't do that. */
  mountBlob(blob: Pick<Descriptor, "digest">, from: string, signal: AbortSignal): Promise<boolean>;
  /** Locks the store against other writers on this machine. Resolves to `undefined` where that is not possible. */
  lock(signal: AbortSignal): Promise<Disposable | undefined>;
}

/** `minWriteIntervalMilliseconds` of a store in which a write costs little. */
export const cheapWriteIntervalMilliseconds = 15_000;

export type BlobChecks = "digest" | "size";

/** The methods of a store by which images are read. */
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

/** Thrown if a store lacks a blob that a manifest or an index names. */
export class MissingBlobError extends BoughError {
  override readonly name = "MissingBlobError";
}

/** Thrown if another writer has been faster. The caller has to read its manifest first, so that nothing of it is lost. */
export class ManifestConflictError extends BoughError {
  override readonly name = "ManifestConflictError";
}

/** Thrown if the content of a blob does not have its digest or size. */
export class WrongBlobError extends BoughError {
  override readonly name = "WrongBlobError";
  /** True if the content came from a mirror. Later attempts skip that mirror, so they may succeed. */
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
