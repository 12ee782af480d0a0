import { BoughError } from "../../errors.ts";
import { digestOf, isDigest } from "../../image/digest.ts";
import type { Descriptor } from "../../image/oci-layout.ts";
import type { Platform } from "../../image/platform.ts";
import { type ImportFile, type JsonObject, readManifestFile } from "./image-files.ts";

/** The parts of an image on disk, before its layers have been read. */
export interface ImageParts {
  /** The configuration, its digest verified. */
  config: { bytes: Uint8Array; digest: string };
  /** The lowest first. */
  layers: LayerFile[];
}

export interface LayerFile {
  file: ImportFile;
  /** The digest of the file's bytes, if the manifest has it: `sha256:<hex>`. */
  digest: string | undefined;
  /** The repository that has it: `docker://HOST/NAME`. */
  source?: string | undefined;
}

/** A file that a manifest refers to, by digest and size; its media type does not matter. */
export type FileDescriptor = Omit<Descriptor, "mediaType">;

/** Returns a sha256 digest, or throws. OCI allows other algorithms, but registries and configurations use only this one. */
export function requireDigest(value: unknown, name: string): string {
  if (isDigest(value)) return value;
  const shown = typeof value === "string" ? JSON.stringify(value.slice(0, 100)) : "nothing";
  throw new BoughError(`${name} has ${shown} where a digest is expected (sha256: and 64 hexadecimal digits)`);
}

export function parseDescriptor(descriptor: JsonObject, name: string): FileDescriptor {
  const { size } = descriptor;
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0) {
    throw new BoughError(`${name} is malformed: a descriptor has no valid size`);
  }
  return { digest: requireDigest(descriptor.digest, name), size };
}

/** Throws if the file is missing, or its size differs from the descriptor's. */
export function requireFile(
  file: ImportFile | undefined,
  { digest, size }: FileDescriptor,
  name: string,
): ImportFile {
  if (file === undefined) throw new BoughError(`${name} refers to ${digest}, and there is no such file`);
  if (file.size === size) return file;
  throw new BoughError(`${file.name} is damaged: it has ${file.size} bytes, but ${name} expects ${size}`);
}

/** Reads a manifest, an index or a configuration. Rejects if its digest is not the expected one. */
export async function readVerified(file: ImportFile, digest: string): Promise<Uint8Array> {
  const bytes = await readManifestFile(file);
  const actual = digestOf(bytes);
  if (actual === digest) return bytes;
  throw new BoughError(`${file.name} is damaged: its digest is ${actual}, but ${digest} is expected`);
}

/** Returns the image that `FROM scratch` starts from: no layers, and an empty configuration. */
export function emptyImage(platform: Platform | undefined): ImageParts {
  const { os, architecture, variant = "" } = platform ?? {};
  const config = {
    ...(platform && { os, architecture, ...(variant !== "" && { variant }) }),
    config: {},
    rootfs: { type: "layers", diff_ids: [] },
  };
  const bytes = new TextEncoder().encode(JSON.stringify(config));
  return { config: { bytes, digest: digestOf(bytes) }, layers: [] };
}
