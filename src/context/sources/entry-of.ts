import { constants, type Stats } from "node:fs";
import { fileError } from "../file-system/file-error.ts";
import type { FileSystem } from "../file-system/file-system.ts";
import type { ContextEntry, FileStat } from "./entry.ts";

export interface EntryPaths {
  contextPath: string;
  absolutePath: string;
  relativePath: string;
}

/** The entry for a file, directory or link; `undefined` for what an image can't be given (`specialKind`). */
export function entryOf(paths: EntryPaths, stats: Stats, files: FileSystem): ContextEntry | undefined {
  const { contextPath, absolutePath, relativePath } = paths;
  const bits = stats.mode;
  const mode = bits & 0o7777;
  switch (bits & constants.S_IFMT) {
    case constants.S_IFREG: {
      const stat = fileStatOf(stats);
      return { type: "file", contextPath, absolutePath, relativePath, mode, size: stat.size, stat };
    }
    case constants.S_IFDIR:
      return { type: "directory", contextPath, absolutePath, relativePath, mode };
    case constants.S_IFLNK:
      return {
        type: "symlink",
        contextPath,
        absolutePath,
        relativePath,
        mode,
        target: readTarget(paths, files),
      };
    default:
      return undefined;
  }
}

export function fileStatOf(stats: Stats): FileStat {
  return {
    device: stats.dev,
    inode: stats.ino,
    size: stats.size,
    mtimeMs: stats.mtimeMs,
    ctimeMs: stats.ctimeMs,
  };
}

export function specialKind(stats: Stats): string {
  if (stats.isFIFO()) return "named pipe";
  if (stats.isSocket()) return "socket";
  return "device";
}

function readTarget(paths: EntryPaths, files: FileSystem): string {
  try {
    return files.readLink(paths.absolutePath);
  } catch (error) {
    throw fileError("read the link", paths.contextPath, error);
  }
}
