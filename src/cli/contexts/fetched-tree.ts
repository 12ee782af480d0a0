import { readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FileSystem, localFileSystem, localPath } from "../../context/file-system/file-system.ts";
import { type RecordedModes, withModes } from "../../context/file-system/recorded-modes.ts";
import { errorCode } from "../../system-error.ts";
import { cannotKeep, onDisk } from "./kept-contexts.ts";

/** The files of a fetched context. */
export interface FetchedTree {
  /** The directory, with `/` on every system. */
  tree: string;
  /** Reads them, with the modes that the archive or the repository has. */
  files: FileSystem;
}

/** The name of the directory with the files, in the directory of a kept context. */
export const treeName = "tree";
const modesName = "modes";

/** Keeps the modes of a tree, on a system without. */
export function writeModes(place: string, modes: RecordedModes): void {
  const path = join(place, modesName);
  onDisk(path, () => writeFileSync(path, JSON.stringify([...modes])));
}

/** Opens the tree of a kept context, or a directory in it. */
export function openTree(place: string, subdirectory = ""): FetchedTree {
  const root = localPath(realpathSync(join(place, treeName)));
  const tree = subdirectory === "" ? root : `${root}/${subdirectory}`;
  const modes = readModes(place);
  return { tree, files: modes === undefined ? localFileSystem : withModes(localFileSystem, root, modes) };
}

function readModes(place: string): RecordedModes | undefined {
  const path = join(place, modesName);
  try {
    return new Map(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw cannotKeep(path, error);
  }
}
