import { constants, type Stats } from "node:fs";
import { readError } from "../file-system/file-error.ts";
import type { FileSystem } from "../file-system/file-system.ts";
import type { ContextEntry, EntryPaths, FileStat } from "./entry.ts";

/** Returns the entry for a file, directory or link; `undefined` for a file that no image can have (`specialKind`). */
export function entryOf(paths: EntryPaths, stats: Stats, files: FileSystem): ContextEntry | undefined {
  const { contextPath, absolutePath, relativePath } = paths;
  const mode = stats.mode & 0o7777;
  const type = entryType(stats);
  switch (type) {
    case "file": {
      const stat = fileStatOf(stats);
      return { type, contextPath, absolutePath, relativePath, mode, size: stat.size, stat };
    }
    case "directory":
      return { type, contextPath, absolutePath, relativePath, mode, mtimeMs: stats.mtimeMs };
    case "symlink": {
      const target = readTarget(paths, files);
      return { type, contextPath, absolutePath, relativePath, mode, mtimeMs: stats.mtimeMs, target };
    }
    case undefined:
      return undefined;
  }
}

/** Returns `undefined` for a file that no image can have. */
export function entryType({ mode }: Stats): ContextEntry["type"] | undefined {
  switch (mode & constants.S_IFMT) {
    case constants.S_IFREG:
      return "file";
    case constants.S_IFDIR:
      return "directory";
    case constants.S_IFLNK:
      return "symlink";
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

export function readTarget(
  { contextPath, absolutePath }: Omit<EntryPaths, "relativePath">,
  files: FileSystem,
): string {
  try {
    return files.readLink(absolutePath);
  } catch (error) {
    throw readError("read the link", contextPath, error);
  }
}
