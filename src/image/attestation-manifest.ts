/**
 * Attestations of an image, stored as BuildKit does: a manifest for no platform, beside the image's in its index.
 * https://github.com/moby/buildkit/blob/master/docs/attestations/attestation-storage.md
 */
import { digestOf } from "./digest.ts";
import { type Descriptor, mediaTypes } from "./oci-layout.ts";

/** The annotation of the manifest's layers that names the type of the statement in them. */
export const predicateAnnotation = "in-toto.io/predicate-type";

/** An in-toto statement. */
export interface Attestation {
  predicateType: string;
  /** The statement as JSON. */
  statement: string;
}

interface AttestationDescriptor extends Descriptor {
  annotations: Readonly<Record<string, string>>;
  platform: { architecture: string; os: string };
}

/** Writes the manifest of an image's attestations, and returns its descriptor for an index. `put` writes a blob. */
export function putAttestations(
  image: Descriptor,
  attestations: readonly Attestation[],
  put: (mediaType: string, content: string) => Descriptor,
): AttestationDescriptor {
  const noPlatform = { architecture: "unknown", os: "unknown" };
  const layers = attestations.map(({ predicateType, statement }) => ({
    ...put(mediaTypes.statement, statement),
    annotations: { [predicateAnnotation]: predicateType },
  }));
  const rootfs = { type: "layers", diff_ids: attestations.map(({ statement }) => digestOf(statement)) };
  const manifest = {
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    config: put(mediaTypes.config, JSON.stringify({ ...noPlatform, config: {}, rootfs })),
    layers,
  };
  return {
    ...put(mediaTypes.manifest, JSON.stringify(manifest)),
    annotations: {
      "vnd.docker.reference.digest": image.digest,
      "vnd.docker.reference.type": "attestation-manifest",
    },
    platform: noPlatform,
  };
}
