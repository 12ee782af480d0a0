import { createImageLayout, mediaTypes } from "../../image/oci-layout.ts";
import type { ImportedBlob } from "../records/imported-blobs.ts";
import type { ImportedConfig } from "./image-config.ts";
import type { ImageParts } from "./image-parts.ts";
import { addLayerBlob, type LayerJob, type TakenLayer } from "./take-layer.ts";

/** The name of the one image in the layout. */
export const layoutImage = "import";

/**
 * Makes an OCI image layout for umoci. Every byte of its layers has been verified, and its manifests are bough's own, so that
 * no two programs can read them in two ways. `directory`: to be made. Returns the files that its layers came in, the lowest first.
 */
export async function makePlainLayout(
  { layers }: ImageParts,
  facts: ImportedConfig,
  directory: string,
  job: Omit<LayerJob, "blobs" | "used"> & { report: (message: string) => void },
): Promise<ImportedBlob[]> {
  const layout = createImageLayout(directory);
  const used = { bytes: 0, entries: 0, written: 0 };
  const taken: TakenLayer[] = [];
  for (const [index, layer] of layers.entries()) {
    job.report(`Verifying layer ${index + 1} of ${layers.length}`);
    taken.push(await addLayerBlob(layer, facts.diffIds[index] ?? "", { ...job, blobs: layout.blobs, used }));
  }
  const { platform, diffIds } = facts;
  const config = { ...platform, config: {}, rootfs: { type: "layers", diff_ids: diffIds } };
  const manifest = {
    schemaVersion: 2,
    config: layout.write(mediaTypes.config, JSON.stringify(config)),
    layers: taken.map(({ descriptor }) => descriptor),
  };
  layout.finish(layout.write(mediaTypes.manifest, JSON.stringify(manifest)), layoutImage);
  return taken.map(({ original }) => original);
}
