import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ImageFacts } from "./image-config.ts";
import { digestOf, type ImageParts } from "./image-parts.ts";
import { type LayerJob, type LayoutBlob, takeLayer } from "./take-layer.ts";

/** The name of the one image in the layout. */
export const layoutImage = "import";

/**
 * Makes an OCI image layout for umoci. Every byte of its layers has been verified, and its manifests are bough's own, so that
 * no two programs can read them in two ways. `directory`: to be made.
 */
export async function makePlainLayout(
  { layers }: ImageParts,
  facts: ImageFacts,
  directory: string,
  job: Omit<LayerJob, "blobs" | "used"> & { report: (message: string) => void },
): Promise<void> {
  const blobs = join(directory, "blobs", "sha256");
  mkdirSync(blobs, { recursive: true, mode: 0o700 });
  const used = { bytes: 0, entries: 0, written: 0 };
  const taken: LayoutBlob[] = [];
  for (const [index, layer] of layers.entries()) {
    job.report(`Verifying layer ${index + 1} of ${layers.length}`);
    taken.push(await takeLayer(layer, facts.diffIds[index] ?? "", { ...job, blobs, used }));
  }
  const { platform, diffIds } = facts;
  const config = { ...platform, config: {}, rootfs: { type: "layers", diff_ids: diffIds } };
  const manifest = {
    schemaVersion: 2,
    config: writeJson(blobs, config, "application/vnd.oci.image.config.v1+json"),
    layers: taken,
  };
  const described = writeJson(blobs, manifest, "application/vnd.oci.image.manifest.v1+json");
  const annotations = { "org.opencontainers.image.ref.name": layoutImage };
  const index = { schemaVersion: 2, manifests: [{ ...described, annotations }] };
  writeFileSync(join(directory, "index.json"), JSON.stringify(index));
  writeFileSync(join(directory, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
}

function writeJson(blobs: string, value: unknown, mediaType: string): LayoutBlob {
  const text = JSON.stringify(value);
  const digest = digestOf(text);
  writeFileSync(join(blobs, digest.slice("sha256:".length)), text);
  return { mediaType, digest, size: Buffer.byteLength(text) };
}
