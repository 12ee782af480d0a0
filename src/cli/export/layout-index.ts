import { readFileSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { nameAnnotation } from "../../image/oci-layout.ts";

/** Reads the images that the index of an OCI layout lists. Throws a BoughError if it is not an index. */
export function readManifests(path: string): object[] {
  try {
    const { manifests } = JSON.parse(readFileSync(path, "utf8")) as { manifests?: unknown };
    if (Array.isArray(manifests) && manifests.every((each) => typeof each === "object" && each !== null))
      return manifests as object[];
  } catch (error) {
    throw new BoughError(`${path} cannot be read: is its directory an OCI image layout?`, { cause: error });
  }
  throw new BoughError(`${path} lists no images: its directory is not an OCI image layout`);
}

/** Returns the name of an image in an index. */
export function nameIn(manifest: object): unknown {
  const { annotations } = manifest as { annotations?: Record<string, unknown> };
  return annotations?.[nameAnnotation];
}
