/** Finds the signatures of a manifest in its repository: bundles among its referrers, and those under cosign's old tag. */
import { mediaTypes } from "../image/oci-layout.ts";
import { type BlobStore, MissingBlobError, readDescriptor, WrongBlobError } from "../registry/blob-store.ts";
import type { Referrer, Referrers } from "../registry/referrers.ts";
import { WrongManifestError } from "../registry/registry-error.ts";
import { parseRecord } from "../service/http/json.ts";
import { readAtMost } from "../streams.ts";
import { anyBundleType } from "./bundle.ts";
import { bundleOf, readLayers, signatureTag } from "./simple-signing.ts";
import type { SignedBundle } from "./verify-bundle.ts";

export interface FoundSignature extends SignedBundle {
  /** `bundle`: a referrer; `tag`: a layer of the manifest under cosign's tag. */
  kind: "bundle" | "tag";
  /** The digest of the manifest that has it. */
  manifest: string;
}

const maxBundleBytes = 4 * 1024 * 1024;
/** Others may attach as many as they like. */
const maxSignatures = 200;

export async function findSignatures(
  referrers: Referrers,
  digest: string,
  signal: AbortSignal,
): Promise<FoundSignature[]> {
  const found: FoundSignature[] = [];
  for (const referrer of await referrers.list({ digest }, signal)) {
    if (found.length >= maxSignatures) break;
    found.push(...(await readReferrer(referrers.store, referrer, signal)));
  }
  found.push(...(await readTagged(referrers.store, digest, signal)));
  return found.slice(0, maxSignatures);
}

/** A list need not say what a referrer is, so that its manifest counts. */
async function readReferrer(
  store: BlobStore,
  { digest, mediaType, artifactType }: Referrer,
  signal: AbortSignal,
): Promise<FoundSignature[]> {
  if (mediaType !== mediaTypes.manifest) return [];
  if (artifactType !== undefined && !anyBundleType.test(artifactType)) return [];
  const manifest = await unlessBroken(store.getManifest(digest, signal));
  const layers: unknown = manifest && parseRecord(manifest.bytes)?.layers;
  const bundles = (Array.isArray(layers) ? layers : []).flatMap((layer) => readDescriptor(layer) ?? []);
  const found: FoundSignature[] = [];
  for (const blob of bundles) {
    if (!anyBundleType.test(blob.mediaType)) continue;
    const bytes = await unlessBroken(readBlob(store, blob, signal));
    const bundle = (bytes && parseRecord(bytes)) ?? {};
    found.push({ kind: "bundle", manifest: digest, bundle, payload: undefined });
  }
  return found;
}

async function readTagged(store: BlobStore, digest: string, signal: AbortSignal): Promise<FoundSignature[]> {
  const manifest = await store.getManifest(signatureTag(digest), signal);
  if (manifest === undefined) return [];
  const found: FoundSignature[] = [];
  for (const { payload: blob, annotations } of readLayers(manifest.bytes).slice(0, maxSignatures)) {
    const payload = (await unlessBroken(readBlob(store, blob, signal))) ?? new Uint8Array();
    const bundle = bundleOf(annotations, payload);
    if (bundle !== undefined) found.push({ kind: "tag", manifest: manifest.digest, bundle, payload });
  }
  return found;
}

/** Of what is attached, one that the registry has lost, or that others have made wrong, hides none of the others. */
async function unlessBroken<Result>(reading: Promise<Result>): Promise<Result | undefined> {
  try {
    return await reading;
  } catch (error) {
    const isBroken = [MissingBlobError, WrongBlobError, WrongManifestError].some(
      (kind) => error instanceof kind,
    );
    if (isBroken) return undefined;
    throw error;
  }
}

async function readBlob(
  store: BlobStore,
  blob: { digest: string; size: number },
  signal: AbortSignal,
): Promise<Uint8Array> {
  if (blob.size > maxBundleBytes) return new Uint8Array();
  return (await readAtMost(maxBundleBytes, await store.openBlob(blob, signal))).bytes;
}
