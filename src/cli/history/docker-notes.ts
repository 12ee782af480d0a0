/** Notes about builds for docker's action for GitHub, which a build makes and `history rm` removes. */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import { dockerDirectory } from "../../home-directory.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import type { Runtime } from "../process/runtime.ts";

/** Returns the directory in which docker buildx notes builds, by builder and node. */
export function notesDirectory({ environment }: Pick<Runtime, "environment">): string {
  return join(environment.BUILDX_CONFIG || join(dockerDirectory(environment), "buildx"), "refs");
}

/** Removes the notes about builds, whatever builder they name. buildx's own are of other builds, and stay. */
export function removeNotes(builds: readonly string[], runtime: Pick<Runtime, "environment">): void {
  if (builds.length === 0) return;
  const directory = notesDirectory(runtime);
  try {
    for (const builder of directoriesIn(directory))
      for (const node of directoriesIn(builder))
        for (const id of builds) rmSync(join(node, id), { force: true });
  } catch (error) {
    throw new BoughError(`the notes for docker in ${directory} can't be removed: ${reasonOf(error)}`, {
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
