/** Finds the signatures of a manifest in its repository: bundles among its referrers, and those under cosign's old tag. */
import { mediaTypes } from "../image/oci-layout.ts";
import {
  type BlobStore,
  MissingBlobError,
  parseDescriptor,
  type StoredManifest,
  WrongBlobError,
} from "../registry/blob-store.ts";
import type { Referrer, Referrers } from "../registry/referrers.ts";
import { WrongManifestError } from "../registry/registry-error.ts";
import { parseRecord } from "../service/http/json.ts";
import { readAtMost } from "../streams.ts";
import { anyBundleType } from "./bundle.ts";
import { bundleOf, readSignatureLayers, signatureTag } from "./simple-signing.ts";
import type { SignedBundle } from "./verify-bundle.ts";

export interface FoundSignature extends SignedBundle {
  /** `bundle`: a referrer; `tag`: a layer of the manifest under cosign's tag. */
  kind: "bundle" | "tag";
  /** The digest of the manifest that has the signature. */
  manifest: string;
}

interface FoundSignatures {
  signatures: readonly FoundSignature[];
  /** False if more is attached than was read. */
  isWhole: boolean;
}

const maxBundleBytes = 4 * 1024 * 1024;
/** The limits of each kind, referrers and signatures under the tag, since anybody may attach as much as they like. */
const maxSignatures = 200;
const maxTotalBytes = 64 * 1024 * 1024;

export async function findSignatures(
  { list, store }: Referrers,
  digest: string,
  signal: AbortSignal,
): Promise<FoundSignatures> {
  const reader = createReader(store, signal);
  const referrers = (await list({ digest }, signal)).filter(mayHaveBundle);
  const tagged = await reader.readManifest(signatureTag(digest));
  const layers = tagged === undefined ? [] : readSignatureLayers(tagged.bytes);
  const signatures: FoundSignature[] = [];
  for (const referrer of referrers.slice(0, maxSignatures)) {
    const bundle = await readBundle(reader, referrer.digest);
    if (bundle !== undefined)
      signatures.push({ kind: "bundle", manifest: referrer.digest, bundle, payload: undefined });
  }
  for (const { payload: blob, annotations } of layers.slice(0, maxSignatures)) {
    const payload = (await reader.readBlob(blob)) ?? new Uint8Array();
    const bundle = bundleOf(annotations, payload);
    if (bundle !== undefined && tagged !== undefined)
      signatures.push({ kind: "tag", manifest: tagged.digest, bundle, payload });
  }
  const isWhole = Math.max(referrers.length, layers.length) <= maxSignatures && !reader.isSpent();
  return { signatures, isWhole };
}

/** Returns false for a referrer that is not a bundle. If a list leaves out the type, the manifest decides. */
function mayHaveBundle({ mediaType, artifactType }: Referrer): boolean {
  return (
    mediaType === mediaTypes.manifest && (artifactType === undefined || anyBundleType.test(artifactType))
  );
}

/** Returns the bundle of a manifest; `undefined` if it names none, and an empty one if its blob is lost. */
async function readBundle(reader: Reader, digest: string): Promise<object | undefined> {
  const manifest = await reader.readManifest(digest);
  const layers: unknown = manifest && parseRecord(manifest.bytes)?.layers;
  const blob = (Array.isArray(layers) ? layers : [])
    .map(parseDescriptor)
    .find((layer) => layer !== undefined && anyBundleType.test(layer.mediaType));
  if (blob === undefined) return undefined;
  const bytes = await reader.readBlob(blob);
  return (bytes && parseRecord(bytes)) ?? {};
}

/** Reads manifests and blobs up to a total size. One that can't be read counts as missing, so that it does not hide the others. */
interface Reader {
  readManifest(reference: string): Promise<StoredManifest | undefined>;
  readBlob(blob: { digest: string; size: number }): Promise<Uint8Array | undefined>;
  /** True when nothing more is read. */
  isSpent(): boolean;
}

function createReader(store: BlobStore, signal: AbortSignal): Reader {
  let left = maxTotalBytes;

  async function spend<Part extends { bytes: Uint8Array }>(
    read: () => Promise<Part | undefined>,
  ): Promise<Part | undefined> {
    if (left <= 0) return undefined;
    try {
      const part = await read();
      left -= part?.bytes.byteLength ?? 0;
      return part;
    } catch (error) {
      if (error instanceof MissingBlobError) return undefined;
      if (!(error instanceof WrongBlobError || error instanceof WrongManifestError)) throw error;
      // The number of bytes is unknown.
      left -= maxBundleBytes;
      return undefined;
    }
  }

  return {
    readManifest: (reference) => spend(() => store.getManifest(reference, signal)),
    async readBlob(blob) {
      if (blob.size > maxBundleBytes) return undefined;
      const part = await spend(async () => readAtMost(maxBundleBytes, await store.openBlob(blob, signal)));
      return part?.bytes;
    },
    isSpent: () => left <= 0,
  };
}
