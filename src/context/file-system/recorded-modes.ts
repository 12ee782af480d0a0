/**
 * The modes of a tree from an archive or a repository, on a system without file modes (see `keepsModes`). A link is a file that
 * contains its target there, as git writes it.
 */
import { constants, readFileSync } from "node:fs";
import type { FileSystem } from "./file-system.ts";

/** Permissions by path, relative to the tree. */
export type RecordedModes = ReadonlyMap<string, number | "link">;

/** Returns `files` with these modes for the paths below `root`. */
export function withModes(files: FileSystem, root: string, modes: RecordedModes): FileSystem {
  const modeOf = (path: string) =>
    path.startsWith(`${root}/`) ? modes.get(path.slice(root.length + 1)) : undefined;
  return {
    ...files,
    stat(path) {
      const stats = files.stat(path);
      const mode = modeOf(path);
      if (mode === "link") stats.mode = constants.S_IFLNK | 0o777;
      else if (mode !== undefined) stats.mode = (stats.mode & constants.S_IFMT) | mode;
      return stats;
    },
    readLink: (path) => (modeOf(path) === "link" ? readFileSync(path, "utf8") : files.readLink(path)),
  };
}
