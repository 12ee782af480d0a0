/** A cache as an OCI artifact: a manifest whose configuration is the index, and whose layers are the images' layers. */
import { BoughError } from "../../../errors.ts";
import { decompress } from "../../../image/compression.ts";
import { digestOf, isDigest } from "../../../image/digest.ts";
import { type Descriptor, mediaTypes } from "../../../image/oci-layout.ts";
import type { BlobStore } from "../../../registry/blob-store.ts";
import { RegistryError } from "../../../registry/registry-error.ts";
import { asInteger, asRecord, asText } from "../../../service/http/json.ts";
import { readAtMost } from "../../../streams.ts";
import {
  type DecodedIndex,
  decodeIndex,
  decodeSteps,
  type IndexFiles,
  UnusableIndexError,
  type Verify,
} from "../index-file.ts";

export const artifactTypes = {
  artifact: "application/vnd.bough.cache.v1",
  index: "application/vnd.bough.cache.index.v1+zstd",
  steps: "application/vnd.bough.cache.steps.v1+zstd",
} as const;

/** A cache as it was read. */
export interface StoredCache {
  /** The manifest's digest. */
  digest: string;
  decoded: DecodedIndex;
  /** Digests of the blobs that its manifest keeps from garbage collections. */
  kept: ReadonlySet<string>;
  steps: Descriptor | undefined;
}

/** Registries accept no larger manifest. */
const maxManifestBytes = 4 * 1024 * 1024;
/** The size limit of an index before compression: each section is bounded. */
const maxBytes = 64 * 1024 * 1024;

interface ReadOptions {
  /** The name that the index must have. */
  name: string;
  verify: Verify | undefined;
  signal: AbortSignal;
  /** The cache as it was read before: if it is the same, its index is not read again. */
  last?: StoredCache | undefined;
}

/**
 * Reads a cache: its manifest and its index. Returns `undefined` if there is none.
 *
 * @throws UnusableIndexError if something else is there, or an index that is damaged, newer or not signed as it must be
 */
export async function readArtifact(
  store: BlobStore,
  tag: string,
  { name, verify, signal, last }: ReadOptions,
): Promise<StoredCache | undefined> {
  const manifest = await store.getManifest(tag, signal);
  if (manifest === undefined) return undefined;
  if (manifest.digest === last?.digest) return last;
  const { config, blobs, steps } = readManifest(manifest.bytes);
  const bytes = await readBlob(store, config, signal);
  const decoded = decodeIndex(bytes, name, verify);
  return { digest: manifest.digest, decoded, kept: new Set(blobs.map(({ digest }) => digest)), steps };
}

/** Adds the inputs of steps, which only explanations need. Ignores a file that is missing or damaged: no layer depends on it. */
export async function readArtifactSteps(
  store: BlobStore,
  { steps, decoded }: StoredCache,
  signal: AbortSignal,
): Promise<void> {
  if (steps === undefined || decoded.hasSteps) return;
  try {
    decodeSteps(await readBlob(store, steps, signal), decoded);
  } catch (error) {
    if (!(error instanceof UnusableIndexError)) throw error;
  }
}

/** Writes a cache, whose `blobs` the store has already. Returns the manifest's digest. */
export async function writeArtifact(
  store: BlobStore,
  tag: string,
  { index, steps }: IndexFiles,
  blobs: readonly Descriptor[],
  signal: AbortSignal,
): Promise<string> {
  const config = await putFile(store, artifactTypes.index, index, signal);
  const inputs = await putFile(store, artifactTypes.steps, steps, signal);
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: mediaTypes.manifest,
      artifactType: artifactTypes.artifact,
      config,
      layers: [inputs, ...blobs.map(({ mediaType, digest, size }) => ({ mediaType, digest, size }))],
    }),
  );
  await store.putManifest(tag, { mediaType: mediaTypes.manifest, bytes: manifest }, signal);
  return digestOf(manifest);
}

async function putFile(
  store: BlobStore,
  mediaType: string,
  content: Uint8Array,
  signal: AbortSignal,
): Promise<Descriptor> {
  const bytes = await Bun.zstdCompress(content);
  const descriptor = { mediaType, digest: digestOf(bytes), size: bytes.byteLength };
  await store.putBlob(
    descriptor,
    async function* () {
      yield bytes;
    },
    signal,
  );
  return descriptor;
}

/** A registry that does not respond has the blob most likely; one without the blob, or with other bytes, never will. */
async function readWhole(store: BlobStore, blob: Descriptor, signal: AbortSignal) {
  try {
    return await readAtMost(maxBytes, await store.openBlob(blob, signal));
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof BoughError) || error instanceof RegistryError) throw error;
    throw new UnusableIndexError(`it is incomplete: ${error.message}`);
  }
}

async function readBlob(store: BlobStore, blob: Descriptor, signal: AbortSignal): Promise<Uint8Array> {
  if (blob.size > maxBytes) throw new UnusableIndexError("it is too large");
  const packed = await readWhole(store, blob, signal);
  async function* content() {
    yield packed.bytes;
  }
  // In pieces, so that a small file can't fill the memory.
  const unpacked = await readAtMost(maxBytes, decompress(content(), "zstd", "it")).catch(() => {
    throw new UnusableIndexError("it is damaged");
  });
  if (!unpacked.isWhole) throw new UnusableIndexError("it is too large");
  return unpacked.bytes;
}

function readManifest(bytes: Uint8Array): {
  config: Descriptor;
  steps: Descriptor | undefined;
  blobs: readonly Descriptor[];
} {
  if (bytes.byteLength > maxManifestBytes) throw new UnusableIndexError("its manifest is too large");
  const manifest = asRecord(parse(bytes));
  const config = readDescriptor(manifest?.config);
  if (config?.mediaType !== artifactTypes.index) throw new ForeignArtifactError(describeForeign(manifest));
  const layers = Array.isArray(manifest?.layers) ? manifest.layers.map(readDescriptor) : [];
  const blobs = layers.filter((layer) => layer !== undefined);
  return { config, steps: blobs.find(({ mediaType }) => mediaType === artifactTypes.steps), blobs };
}

/** Thrown if a tag names something that no bough wrote: it must not be replaced. */
export class ForeignArtifactError extends UnusableIndexError {}

function describeForeign(manifest: ReturnType<typeof asRecord>): string {
  const text = JSON.stringify(manifest ?? {});
  if (text.includes("application/vnd.buildkit.cacheconfig."))
    return "docker buildx wrote it, in a format that bough does not read";
  if (text.includes(`"application/vnd.bough.cache.`)) return "a newer bough wrote it";
  return "it is an image or another artifact, no cache of bough";
}

function readDescriptor(value: unknown): Descriptor | undefined {
  const record = asRecord(value);
  const [mediaType, digest, size] = [asText(record?.mediaType), record?.digest, asInteger(record?.size)];
  if (mediaType === undefined || !isDigest(digest) || size === undefined || size < 0) return undefined;
  return { mediaType, digest, size };
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString());
  } catch {
    return undefined;
  }
}
