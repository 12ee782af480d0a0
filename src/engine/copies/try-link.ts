import { linkSync } from "node:fs";
import { errorCode } from "../../system-error.ts";
import type { Path } from "./path.ts";

/** Makes a hard link. Returns false if the file system allows no more links to this file, or none at all. */
export function tryLink(existing: Path, path: Path): boolean {
  try {
    linkSync(existing, path);
    return true;
  } catch (error) {
    if (["EMLINK", "EPERM", "EXDEV", "ENOTSUP"].includes(errorCode(error) ?? "")) return false;
    throw error;
  }
}
