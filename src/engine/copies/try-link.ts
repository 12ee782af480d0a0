import { linkSync } from "node:fs";
import { errorCode } from "../../system-error.ts";
import type { Path } from "../system/path.ts";
import type { Problems } from "./batch-sharing.ts";

/** A hard link to make: the file, and its new name. */
export type LinkJob = readonly [existing: Path, path: Path];

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

export function linkBatch(jobs: readonly LinkJob[]): Problems<"refused"> {
  return jobs.flatMap(([existing, path], index) =>
    tryLink(existing, path) ? [] : [[index, "refused"] as const],
  );
}
