/** The references to builds that docker buildx and docker's action for GitHub keep as files: a build writes one, `history rm` removes it. */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import { dockerDirectory } from "../../home-directory.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import type { Runtime } from "../process/runtime.ts";

/** Returns docker buildx's directory of references, with a directory for each builder and node. */
export function buildRefsDirectory({ environment }: Pick<Runtime, "environment">): string {
  return join(environment.BUILDX_CONFIG || join(dockerDirectory(environment), "buildx"), "refs");
}

/** Removes the references to builds, of any builder. Those of buildx itself have other IDs. */
export function removeBuildRefs(builds: readonly string[], runtime: Pick<Runtime, "environment">): void {
  if (builds.length === 0) return;
  const directory = buildRefsDirectory(runtime);
  try {
    for (const builder of directoriesIn(directory))
      for (const node of directoriesIn(builder))
        for (const id of builds) rmSync(join(node, id), { force: true });
  } catch (error) {
    throw new BoughError(`cannot remove docker's references to builds in ${directory}: ${reasonOf(error)}`, {
      hint: "The builds are no longer in the history.",
      cause: error,
    });
  }
}

function directoriesIn(directory: string): string[] {
  try {
    return readdirSync(directory, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? join(directory, entry.name) : [],
    );
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [];
    throw error;
  }
}
