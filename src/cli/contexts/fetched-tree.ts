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
  /** Reads the files, with the modes that they have in the archive or the repository. */
  files: FileSystem;
}

/** The name of the directory that contains the files, in the directory of a kept context. */
export const treeName = "tree";
const modesName = "modes";

/** Saves the modes of a tree, for systems whose files have none. */
export function writeModes(directory: string, modes: RecordedModes): void {
  const path = join(directory, modesName);
  onDisk(path, () => writeFileSync(path, JSON.stringify([...modes])));
}

/** Opens the tree of a kept context, or a directory in it. */
export function openTree(directory: string, subdirectory = ""): FetchedTree {
  const root = localPath(realpathSync(join(directory, treeName)));
  const tree = subdirectory === "" ? root : `${root}/${subdirectory}`;
  const modes = readModes(directory);
  return { tree, files: modes === undefined ? localFileSystem : withModes(localFileSystem, root, modes) };
}

function readModes(directory: string): RecordedModes | undefined {
  const path = join(directory, modesName);
  try {
    return new Map(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw cannotKeep(path, error);
  }
}
