import { constants, lstatSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import { errorCode } from "../../system-error.ts";
import type { ImportFiles } from "./image-files.ts";

/**
 * Opens the files of an image that is a directory. The path of the directory may contain links. Links inside it are not followed,
 * since the image's author chose their targets. `isOwn`: the directory belongs to the import.
 */
export function openDirectoryFiles(directory: string, isOwn = false): ImportFiles {
  const root = realpathSync(directory);
  return {
    find(name) {
      const path = join(root, name);
      const stats = lstatSync(path, { throwIfNoEntry: false });
      if (stats === undefined) return undefined;
      if (!isPlain(path))
        throw new BoughError(
          `${path} is a symbolic link or is reached through one, which is not allowed here`,
        );
      if (!stats.isFile()) throw new BoughError(`${path} is not a regular file`);
      const { size } = stats;
      const place = { path, offset: 0, length: size, name: path, flags: constants.O_NOFOLLOW };
      return { name: path, size, place, isOwn };
    },
  };
}

/** True if no part of `path`, which is below a real path, is a link. */
function isPlain(path: string): boolean {
  try {
    return realpathSync(path) === path;
  } catch (error) {
    if (["ENOENT", "ELOOP"].includes(errorCode(error) ?? "")) return false;
    throw error;
  }
}
