import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import { digestOf } from "../../image/digest.ts";
import type { Platform } from "../../image/platform.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import { isDiskFull } from "../faults.ts";
import type { ImportBudget } from "../import-limits.ts";
import { openArchiveFiles } from "./archive-files.ts";
import {
  asObjects,
  asTexts,
  type ImportFile,
  type ImportFiles,
  type JsonObject,
  openDirectoryFiles,
  optionalText,
  parseJsonBytes,
  readManifestFile,
  requireOnly,
} from "./image-files.ts";
import { completeName } from "./image-names.ts";
import type { ImageParts } from "./image-parts.ts";
import type { LocalSource } from "./image-source.ts";
import { readOciLayout, readSkopeoDirectory } from "./read-oci.ts";

/**
 * Opens an image on this machine. bough itself reads it, since it can't control how other programs treat links in an archive or
 * a layout. A compressed archive is decompressed into `directory`.
 */
export async function openLocalImage(
  source: LocalSource,
  platform: Platform | undefined,
  directory: string,
  budget: ImportBudget,
  signal: AbortSignal,
): Promise<ImageParts> {
  const { path, reference, name } = source;
  const archive = () => openArchiveFiles(path, directory, budget, signal);
  try {
    switch (source.kind) {
      case "oci":
        return await readOciLayout(openDirectoryFiles(path), reference, name, platform);
      case "dir":
        return await readSkopeoDirectory(openDirectoryFiles(path), name, platform);
      case "oci-archive":
        return await readOciLayout(await archive(), reference, name, platform);
      case "docker-archive":
        return await readDockerArchive(await archive(), reference, name);
    }
  } catch (error) {
    if (errorCode(error) === undefined || isDiskFull(error)) throw error;
    throw new BoughError(`cannot read ${name}: ${reasonOf(error)}`, { cause: error });
  }
}

/**
 * Reads an image from an archive of `docker save`: a list of images, each with the names of its configuration and its layers.
 * `reference` picks one by name or as `@<number>`; it is optional if there is only one.
 */
async function readDockerArchive(
  files: ImportFiles,
  reference: string | undefined,
  name: string,
): Promise<ImageParts> {
  const file = files.find("manifest.json");
  if (file === undefined) {
    const isLayout = files.find("index.json") !== undefined;
    throw new BoughError(
      `${name} is not an archive of docker save: it has no manifest.json`,
      isLayout ? { hint: "It is an OCI archive: use oci-archive: instead of docker-archive:." } : {},
    );
  }
  const image = choose(
    asObjects(parseJsonBytes(await readManifestFile(file), file.name), file.name),
    reference,
    name,
  );
  const member = (path: string): ImportFile => {
    const found = files.find(path);
    if (found !== undefined) return found;
    throw new BoughError(`${file.name} refers to ${JSON.stringify(path)}, and there is no such file`);
  };
  const configName = optionalText(image.Config);
  if (configName === undefined) throw new BoughError(`${file.name} is malformed: it has no Config`);
  const config = member(configName);
  const bytes = await readManifestFile(config);
  const digest = digestOf(bytes);
  // Docker names the configuration by its digest.
  const hex = /^([0-9a-f]{64})(\.json)?$/.exec(posix.basename(configName))?.[1];
  if (hex !== undefined && digest !== `sha256:${hex}`) {
    throw new BoughError(`${config.name} is damaged: its name does not match its digest ${digest}`);
  }
  const layers = asTexts(image.Layers, file.name).map((path) => ({ file: member(path), digest: undefined }));
  return { config: { bytes, digest }, layers };
}

function choose(images: readonly JsonObject[], reference: string | undefined, name: string): JsonObject {
  const namesOf = (image: JsonObject) => asTexts(image.RepoTags, name);
  const found = images.filter(
    (image, index) =>
      reference === undefined ||
      reference === `@${index}` ||
      namesOf(image).some((tag) => completeName(tag) === completeName(reference)),
  );
  return requireOnly(found, { archive: name, reference, names: () => images.flatMap(namesOf) });
}
