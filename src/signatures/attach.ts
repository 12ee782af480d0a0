/** Stores signatures in the repositories of the manifests that they sign. */
import { digestOf } from "../image/digest.ts";
import { type Descriptor, mediaTypes } from "../image/oci-layout.ts";
import type { BlobStore } from "../registry/blob-store.ts";
import { type Referrers, referrerOf } from "../registry/referrers.ts";
import { inOneChunk } from "../streams.ts";
import { bundleType } from "./bundle.ts";
import {
  addSignatureLayer,
  encodeSignatureLayer,
  type SimpleSignature,
  signatureTag,
} from "./simple-signing.ts";
import { signaturePredicate } from "./statement.ts";

/** Digests of a signature in a registry: its bundle, and the manifest that has the bundle. */
export interface AttachedBundle {
  bundle: string;
  manifest: string;
}

/** Stores a bundle as a referrer: https://github.com/sigstore/cosign/blob/main/specs/BUNDLE_SPEC.md */
export async function attachBundle(
  { store, add }: Referrers,
  subject: Descriptor,
  { bundle, created }: { bundle: Uint8Array; created: string },
  signal: AbortSignal,
): Promise<AttachedBundle> {
  const config = await put(store, "application/vnd.oci.empty.v1+json", Buffer.from("{}"), signal);
  const layer = await put(store, bundleType, bundle, signal);
  const annotations = {
    "org.opencontainers.image.created": created,
    "dev.sigstore.bundle.content": "dsse-envelope",
    "dev.sigstore.bundle.predicateType": signaturePredicate,
  };
  const { mediaType, digest, size } = subject;
  const manifest = {
    ...{ schemaVersion: 2, mediaType: mediaTypes.manifest, artifactType: bundleType },
    ...{ config, layers: [layer], subject: { mediaType, digest, size }, annotations },
  };
  const bytes = Buffer.from(JSON.stringify(manifest));
  const referrer = referrerOf(bytes, bundleType, annotations);
  await add(subject, referrer, bytes, signal);
  return { bundle: layer.digest, manifest: referrer.digest };
}

/** Adds a signature to those under cosign's old tag. */
export async function attachSimple(
  { store }: Pick<Referrers, "store">,
  digest: string,
  signature: SimpleSignature,
  signal: AbortSignal,
): Promise<void> {
  const tag = signatureTag(digest);
  const layer = encodeSignatureLayer(signature);
  await put(store, layer.mediaType, signature.payload, signal);
  const rootfs = { type: "layers", diff_ids: [layer.digest] };
  const configuration = { architecture: "", os: "", config: {}, rootfs };
  const config = await put(store, mediaTypes.config, Buffer.from(JSON.stringify(configuration)), signal);
  const previous = await store.getManifest(tag, signal);
  const bytes = addSignatureLayer(previous?.bytes, layer, config);
  await store.putManifest(tag, { mediaType: mediaTypes.manifest, bytes }, signal);
}

async function put(
  store: BlobStore,
  mediaType: string,
  bytes: Uint8Array,
  signal: AbortSignal,
): Promise<Descriptor> {
  const blob = { digest: digestOf(bytes), size: bytes.byteLength };
  if (!(await store.hasBlob(blob, signal))) await store.putBlob(blob, () => inOneChunk(bytes), signal);
  return { mediaType, ...blob };
}
