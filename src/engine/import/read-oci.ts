import { BoughError } from "../../errors.ts";
import { blobPath, hexOf } from "../../image/digest.ts";
import { containerdNameAnnotation, nameAnnotation } from "../../image/oci-layout.ts";
import { chooseBestImage, formatPlatform, type Platform, parsePlatform } from "../../image/platform.ts";
import { platformOrMachines } from "./image-config.ts";
import {
  asObject,
  asObjects,
  type ImportFile,
  type ImportFiles,
  type JsonObject,
  optionalText,
  parseJsonBytes,
  readManifestFile,
  requireOnly,
} from "./image-files.ts";
import { completeName } from "./image-names.ts";
import {
  type FileDescriptor,
  type ImageParts,
  parseDescriptor,
  readVerified,
  requireFile,
} from "./image-parts.ts";

/** Finds the file of a digest in an image's format. */
type FindBlob = (digest: string) => ImportFile | undefined;

/** An image's files, and the platform to choose from an index, by default the machine's. */
interface BlobLookup {
  find: FindBlob;
  platform: Platform | undefined;
}

/** The maximum depth of nested indexes. */
const maxDepth = 4;

/**
 * Reads an image from an OCI image layout. `reference` picks one by its name in the index; it is optional if there is only one.
 * https://github.com/opencontainers/image-spec/blob/main/image-layout.md
 */
export async function readOciLayout(
  files: ImportFiles,
  reference: string | undefined,
  name: string,
  platform?: Platform,
): Promise<ImageParts> {
  const file = files.find("index.json");
  if (file === undefined) throw new BoughError(`${name} is not an OCI image layout: it has no index.json`);
  const index = asObject(parseJsonBytes(await readManifestFile(file), file.name), file.name);
  const manifests = asObjects(index.manifests, file.name);
  const chosen = chooseByName(manifests, reference, name);
  const find: FindBlob = (digest) => files.find(blobPath(digest));
  return readManifest(parseDescriptor(chosen, file.name), { find, platform }, file.name);
}

/** Reads a directory in skopeo's own format: `manifest.json`, and each blob named by its digest's hex digits. */
export async function readSkopeoDirectory(
  files: ImportFiles,
  name: string,
  platform?: Platform,
): Promise<ImageParts> {
  const file = files.find("manifest.json");
  if (file === undefined) throw new BoughError(`${name} is not an image directory: it has no manifest.json`);
  const find: FindBlob = (digest) => {
    const hex = hexOf(digest);
    return files.find(hex) ?? files.find(`${hex}.manifest.json`);
  };
  return partsOf(await readManifestFile(file), file.name, { find, platform });
}

/** Returns the entry that a reference selects: a name in either annotation, or `@<number>`. Several entries may name one image. */
function chooseByName(
  manifests: readonly JsonObject[],
  reference: string | undefined,
  name: string,
): JsonObject {
  const annotated = (manifest: JsonObject, key: string) =>
    optionalText((manifest.annotations as JsonObject | null | undefined)?.[key]);
  const namesOf = (manifest: JsonObject) => {
    const whole = annotated(manifest, containerdNameAnnotation);
    return [annotated(manifest, nameAnnotation), whole && completeName(whole)].filter(
      (each) => each !== undefined,
    );
  };
  const found = manifests.filter(
    (manifest, index) =>
      reference === undefined || reference === `@${index}` || namesOf(manifest).includes(reference),
  );
  const different = found.filter(
    ({ digest }, at) => found.findIndex((other) => other.digest === digest) === at,
  );
  return requireOnly(different, { archive: name, reference, names: () => manifests.flatMap(namesOf) });
}

async function readManifest(
  descriptor: FileDescriptor,
  from: BlobLookup,
  name: string,
  depth = 0,
): Promise<ImageParts> {
  const file = requireFile(from.find(descriptor.digest), descriptor, name);
  return partsOf(await readVerified(file, descriptor.digest), file.name, from, depth);
}

/** Returns the parts that a manifest names; for an index, those of the image for the platform. */
async function partsOf(bytes: Uint8Array, name: string, from: BlobLookup, depth = 0): Promise<ImageParts> {
  const manifest = asObject(parseJsonBytes(bytes, name), name);
  if (manifest.manifests !== undefined) {
    if (depth >= maxDepth) throw new BoughError(`${name}: its image indexes are nested too deeply`);
    const chosen = chooseByPlatform(asObjects(manifest.manifests, name), name, from.platform);
    return readManifest(parseDescriptor(chosen, name), from, name, depth + 1);
  }
  if (manifest.schemaVersion === 1) {
    throw new BoughError(`${name} is a Docker schema 1 manifest, which bough can read only from a registry`);
  }
  const descriptor = parseDescriptor(asObject(manifest.config, name), name);
  const config = requireFile(from.find(descriptor.digest), descriptor, name);
  return {
    config: { bytes: await readVerified(config, descriptor.digest), digest: descriptor.digest },
    layers: asObjects(manifest.layers, name).map((layer) => {
      const described = parseDescriptor(layer, name);
      return { file: requireFile(from.find(described.digest), described, name), digest: described.digest };
    }),
  };
}

function chooseByPlatform(
  manifests: readonly JsonObject[],
  name: string,
  given: Platform | undefined,
): JsonObject {
  const wanted = platformOrMachines(given);
  const listed = manifests.flatMap((manifest) => {
    const platform = readListed((manifest.platform ?? {}) as JsonObject);
    return platform === undefined ? [] : [{ manifest, platform }];
  });
  const found = chooseBestImage(listed, wanted, ({ platform }) => platform);
  if (found !== undefined) return found.manifest;
  const has = listed
    .map(({ platform }) => formatPlatform(platform))
    .filter((each) => each !== "unknown/unknown");
  // The wording is skopeo's, for an image in a registry.
  throw new BoughError(
    `${name}: no image found in image index for architecture ${wanted.architecture}, OS ${wanted.os}${
      wanted.variant === "" ? "" : `, variant ${wanted.variant}`
    }; it has ${has.join(", ") || "none"}`,
  );
}

function readListed({ os, architecture, variant }: JsonObject): Platform | undefined {
  const parts = [os, architecture, variant].map(optionalText).filter((part) => part !== undefined);
  try {
    return parts.length < 2 ? undefined : parsePlatform(parts.join("/"));
  } catch {
    return undefined;
  }
}
