/**
 * The modes of a tree that came as an archive or from a repository, on a system that has none. A link is a file there that contains
 * its target, as git writes it. See `keepsModes`.
 */
import { constants, readFileSync } from "node:fs";
import type { FileSystem } from "./file-system.ts";

/** Permissions by path, relative to the tree. */
export type RecordedModes = ReadonlyMap<string, number | "link">;

/** Returns `files` in which the paths below `root` have these modes. Others are as they are. */
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
