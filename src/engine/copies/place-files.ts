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
 * Copies files to their destinations, taking one at a time from `files`. Links in the path are followed inside the root. What is
 * at the destination itself is replaced, even a link, as COPY does. The copies share no inode with their originals. Throws at the
 * first file without a `uuid` (one in no store) that has changed since it was hashed.
 *
 * @throws DamagedFilesError naming all stored files whose bytes do not match their SHA-256
 */
export async function placeFiles(to: UpperTree, files: Iterable<PlacedFile>, pace: Pace): Promise<void> {
  const directoryAt = createDirectoryMaker(to);
  const damaged: PlacedFile[] = [];
  using copier = createFileCopier(pace, (file, problem) => {
    if (problem === "directory") throw directoryInPlace(file);
    if (!("uuid" in file)) throw changedWhileRead(file);
    damaged.push(file);
  });
  /** The path by which each directory was reached last. */
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
      // A directory can have two paths, one through a link. The later one of two files with one name must win.
      if ((ways.get(directory) ?? parent) !== parent) await copier.drain();
      ways.set(directory, parent);
    }
    const name = basename(destination);
    if (directory.lower.length > 0 && to.find(directory, name)?.stats.isDirectory())
      throw directoryInPlace(file);
    // A destination is text, and so is its directory's path.
    const copying = copier.copy(file, `${directory.path}/${name}`);
    if (copying !== undefined) await copying;
    count++;
    if (count % filesBetween === 0) edenGC();
  }
  await copier.drain();
  if (damaged.length > 0) throw new DamagedFilesError(damaged);
}

/** Files between two garbage collections. Each leaves some hundred bytes, which would pile up otherwise. */
const filesBetween = 10_000;

function directoryInPlace({ destination }: PlacedFile): BoughError {
  return new BoughError(`cannot put a file at ${destination}: there is a directory in the image`);
}

function changedWhileRead({ destination, path }: PlacedFile): BoughError {
  return new BoughError(`cannot put a file at ${destination}: ${path} changed while it was being read`, {
    hint: "Build again when nothing writes to it any more.",
  });
}
