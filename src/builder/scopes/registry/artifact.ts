/**
 * A cache as an image that holds no files of its own: some registries take no manifest with types that they do not know. Its layers
 * are the index, the inputs of steps, and the images' layers. Annotations say which of them are the first two.
 */
import { BoughError } from "../../../errors.ts";
import { decompress } from "../../../image/compression.ts";
import { digestOf } from "../../../image/digest.ts";
import { type Descriptor, mediaTypes } from "../../../image/oci-layout.ts";
import { type BlobStore, parseDescriptor, type StoredManifest } from "../../../registry/blob-store.ts";
import { RegistryError } from "../../../registry/registry-error.ts";
import { asRecord, asText, parseRecord } from "../../../service/http/json.ts";
import { inOneChunk, readAtMost } from "../../../streams.ts";
import { type IndexFiles, UnusableIndexError } from "../index-file.ts";

const annotation = "vnd.bough.cache";
/** The media type of the two files, which are compressed but not archives. */
const fileType = `${mediaTypes.layer}+zstd`;
/** A valid configuration, for registries that read it. It is the same for all caches. */
const configuration = Buffer.from(
  JSON.stringify({
    architecture: "unknown",
    os: "unknown",
    config: {},
    rootfs: { type: "layers", diff_ids: [] },
  }),
);

/** The types of the first form: a manifest whose configuration was the index. */
const firstTypes = {
  index: "application/vnd.bough.cache.index.v1+zstd",
  steps: "application/vnd.bough.cache.steps.v1+zstd",
} as const;

/** Registries accept no larger manifest. */
const maxManifestBytes = 4 * 1024 * 1024;
const maxSmallBytes = 256 * 1024;
/** The size limit of an index before compression: each section is bounded. */
const maxBytes = 64 * 1024 * 1024;

/** Sends the files of a cache, whose `blobs` the store has already, as it has those that are `kept`. Returns its manifest. */
export async function prepareArtifact(
  store: BlobStore,
  { index, steps }: IndexFiles,
  { blobs, kept }: { blobs: readonly Descriptor[]; kept: ReadonlySet<string> },
  signal: AbortSignal,
): Promise<StoredManifest> {
  const put = async (mediaType: string, bytes: Uint8Array): Promise<Descriptor> => {
    const blob = { mediaType, digest: digestOf(bytes), size: bytes.byteLength };
    if (!kept.has(blob.digest)) await store.putBlob(blob, () => inOneChunk(bytes), signal);
    return blob;
  };
  const putFile = async (file: string, text: Uint8Array) => ({
    ...(await put(fileType, await Bun.zstdCompress(text, { level: levelFor(text) }))),
    annotations: { [annotation]: file },
  });
  const [config, ...files] = await Promise.all([
    put(mediaTypes.config, configuration),
    putFile("index", index),
    putFile("steps", steps),
  ]);
  const layers = [...files, ...blobs.map(({ mediaType, digest, size }) => ({ mediaType, digest, size }))];
  const { manifest: mediaType } = mediaTypes;
  const content = { schemaVersion: 2, mediaType, config, layers, annotations: { [annotation]: "v1" } };
  const bytes = Buffer.from(JSON.stringify(content));
  return { digest: digestOf(bytes), mediaType, bytes };
}

/** Returns the level for a file that each build reads: the highest for a small one, which takes a tenth of a second at most. */
function levelFor({ byteLength }: Uint8Array): number {
  return byteLength <= maxSmallBytes ? 19 : 3;
}

/** Reads a blob. An unreachable registry is an error, since it most likely has the blob; a missing or wrong blob makes the index unusable. */
async function readWhole(store: BlobStore, blob: Descriptor, signal: AbortSignal) {
  try {
    return await readAtMost(maxBytes, await store.openBlob(blob, signal));
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof BoughError) || error instanceof RegistryError) throw error;
    throw new UnusableIndexError(`it is incomplete: ${error.message}`);
  }
}

/** Reads one of the two files. Throws an UnusableIndexError if it is damaged or missing. */
export async function readArtifactFile(
  store: BlobStore,
  blob: Descriptor,
  signal: AbortSignal,
): Promise<Uint8Array> {
  if (blob.size > maxBytes) throw new UnusableIndexError("it is too large");
  const packed = await readWhole(store, blob, signal);
  // In pieces, so that a small file can't fill the memory.
  const unpacked = await readAtMost(maxBytes, decompress(inOneChunk(packed.bytes), "zstd", "it")).catch(
    () => {
      throw new UnusableIndexError("it is damaged");
    },
  );
  if (!unpacked.isWhole) throw new UnusableIndexError("it is too large");
  return unpacked.bytes;
}

/** Returns true for the manifest of a cache, in either form. */
export function isCache(json: unknown): boolean {
  const manifest = asRecord(json);
  return (
    asRecord(manifest?.annotations)?.[annotation] === "v1" ||
    asRecord(manifest?.config)?.mediaType === firstTypes.index
  );
}

export interface CacheManifest {
  index: Descriptor;
  steps: Descriptor | undefined;
  /** Digests of all blobs that it names. */
  kept: ReadonlySet<string>;
}

/** Reads the manifest of a cache in either form. Throws an UnusableIndexError. */
export function readManifest(bytes: Uint8Array): CacheManifest {
  if (bytes.byteLength > maxManifestBytes) throw new UnusableIndexError("its manifest is too large");
  const manifest = parseRecord(bytes);
  const config = readAnnotated(manifest?.config);
  const layers = Array.isArray(manifest?.layers) ? manifest.layers.map(readAnnotated) : [];
  const blobs = layers.filter((layer) => layer !== undefined);
  const [index, steps] =
    config?.mediaType === firstTypes.index
      ? [config, blobs.find(({ mediaType }) => mediaType === firstTypes.steps)]
      : ["index", "steps"].map((file) => blobs.find(({ annotations }) => annotations?.[annotation] === file));
  if (index === undefined || !isCache(manifest))
    throw new UnusableIndexError(describeForeign(manifest), { mustStay: true });
  const named = [...(config === undefined ? [] : [config]), ...blobs];
  return { index, steps, kept: new Set(named.map(({ digest }) => digest)) };
}

function describeForeign(manifest: ReturnType<typeof parseRecord>): string {
  const text = JSON.stringify(manifest ?? {});
  if (text.includes("application/vnd.buildkit.cacheconfig."))
    return "docker buildx wrote it, in a format that bough does not read";
  if (text.includes(`"${annotation}"`) || text.includes(`"application/${annotation}.`))
    return "a newer bough wrote it";
  return "it is an image or another artifact, not a cache of bough";
}

function readAnnotated(value: unknown): Descriptor | undefined {
  const descriptor = parseDescriptor(value);
  const file = asText(asRecord(asRecord(value)?.annotations)?.[annotation]);
  return descriptor && { ...descriptor, ...(file !== undefined && { annotations: { [annotation]: file } }) };
}
