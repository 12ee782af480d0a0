import { BoughError } from "../../errors.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import { isDiskFull } from "../faults.ts";
import type { Budget } from "../import-limits.ts";
import { openArchiveFiles } from "./archive-files.ts";
import { openDirectoryFiles } from "./directory-files.ts";
import type { ImageParts } from "./image-parts.ts";
import type { LocalSource } from "./image-source.ts";
import { readDockerArchive } from "./read-docker-archive.ts";
import { readOciLayout, readSkopeoDirectory } from "./read-oci.ts";

/**
 * Opens an image on this machine. bough itself reads it, since it can't control how other programs treat links in an archive or
 * a layout. `directory`: for decompressed archives.
 */
export async function openLocalImage(
  source: LocalSource,
  directory: string,
  budget: Budget,
  signal: AbortSignal,
): Promise<ImageParts> {
  const { path, reference, name } = source;
  const archive = () => openArchiveFiles(path, directory, budget, signal);
  try {
    switch (source.kind) {
      case "oci":
        return await readOciLayout(openDirectoryFiles(path), reference, name);
      case "dir":
        return await readSkopeoDirectory(openDirectoryFiles(path), name);
      case "oci-archive":
        return await readOciLayout(await archive(), reference, name);
      case "docker-archive":
        return await readDockerArchive(await archive(), reference, name);
    }
  } catch (error) {
    if (errorCode(error) === undefined || isDiskFull(error)) throw error;
    throw new BoughError(`cannot read ${name}: ${reasonOf(error)}`, { cause: error });
  }
}
