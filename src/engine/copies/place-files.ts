import { basename, dirname } from "node:path";
import { BoughError } from "../../errors.ts";
import type { Pace } from "../../pace.ts";
import { DamagedFilesError, type PlacedFile } from "../sandbox/root/staging.ts";
import { createVerifiedCopier } from "../sandbox/root/verified-copy.ts";
import type { UpperDirectory, UpperTree } from "./upper-tree.ts";

/** As `stageFiles`, into a tree that is not mounted. */
export async function placeFiles(to: UpperTree, files: readonly PlacedFile[], pace: Pace): Promise<void> {
  const directories = new Map<string, UpperDirectory>();
  const copy = createVerifiedCopier();
  const damaged: PlacedFile[] = [];
  for (const file of files) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    const { destination } = file;
    const parent = dirname(destination);
    const directory =
      directories.get(parent) ??
      to.makeDirectories(
        to.resolve(parent),
        undefined,
        (inside) =>
          new BoughError(`cannot put a file at ${destination}: ${inside} in the image is not a directory`),
      );
    directories.set(parent, directory);
    const name = basename(destination);
    if (to.find(directory, name)?.stats.isDirectory())
      throw new BoughError(`cannot put a file at ${destination}: there is a directory in the image`);
    const path = to.clear(directory, name);
    // A destination is text, and so is the way to it.
    const copied = copy(file, path.toString());
    if (!(typeof copied === "boolean" ? copied : await copied)) damaged.push(file);
  }
  if (damaged.length > 0) throw new DamagedFilesError(damaged);
}
