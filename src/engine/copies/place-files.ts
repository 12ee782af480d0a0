import { edenGC } from "bun:jsc";
import { basename, dirname } from "node:path";
import { BoughError } from "../../errors.ts";
import type { Pace } from "../../pace.ts";
import { DamagedFilesError } from "../records/files.ts";
import { createDirectoryMaker } from "./directory-maker.ts";
import { createFileCopier } from "./file-copier.ts";
import type { PlacedFile } from "./file-spec.ts";
import type { UpperDirectory, UpperTree } from "./upper-tree.ts";

/**
 * Puts files in place, which are asked for one by one. Links in the directories on the way are followed inside the root; what stands
 * at the destination itself is replaced, a link too, as COPY does. The copies share no inode with their originals. Of files that no
 * store has (without a `uuid`), the first that is not what was hashed ends it.
 *
 * @throws DamagedFilesError naming all stored files whose bytes do not have their SHA-256
 */
export async function placeFiles(to: UpperTree, files: Iterable<PlacedFile>, pace: Pace): Promise<void> {
  const directoryAt = createDirectoryMaker(to);
  const damaged: PlacedFile[] = [];
  using copier = createFileCopier(pace, (file, problem) => {
    if (problem === "directory") throw directoryInPlace(file);
    if (!("uuid" in file)) throw changedWhileRead(file);
    damaged.push(file);
  });
  /** Each with the way by which it was reached last. */
  const ways = new Map<UpperDirectory, string>();
  let parent = "";
  let directory = to.root;
  let count = 0;
  for (const file of files) {
    const { destination } = file;
    if (dirname(destination) !== parent) {
      parent = dirname(destination);
      directory = directoryAt(
        parent,
        (inside) =>
          new BoughError(`cannot put a file at ${destination}: ${inside} in the image is not a directory`),
      );
      to.materialize(directory);
      // Two ways to it, one through a link: of two files of one name the later one stays.
      if ((ways.get(directory) ?? parent) !== parent) await copier.drain();
      ways.set(directory, parent);
    }
    const name = basename(destination);
    if (directory.lower.length > 0 && to.find(directory, name)?.stats.isDirectory())
      throw directoryInPlace(file);
    // A destination is text, and so is the way to it.
    const copying = copier.copy(file, `${directory.path}/${name}`);
    if (copying !== undefined) await copying;
    count++;
    if (count % filesBetween === 0) edenGC();
  }
  await copier.drain();
  if (damaged.length > 0) throw new DamagedFilesError(damaged);
}

/** Each leaves some hundred bytes behind, which the collector would let pile up. */
const filesBetween = 10_000;

function directoryInPlace({ destination }: PlacedFile): BoughError {
  return new BoughError(`cannot put a file at ${destination}: there is a directory in the image`);
}

function changedWhileRead({ destination, path }: PlacedFile): BoughError {
  return new BoughError(`cannot put a file at ${destination}: ${path} changed while it was being read`, {
    hint: "Build again once nothing writes to it any more.",
  });
}
