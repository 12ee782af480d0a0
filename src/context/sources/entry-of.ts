import { type BigIntStats, constants } from "node:fs";
import { fileError } from "../file-system/file-error.ts";
import type { FileSystem } from "../file-system/file-system.ts";
import type { ContextEntry, FileStat } from "./entry.ts";

export interface EntryPaths {
  contextPath: string;
  absolutePath: string;
  relativePath: string;
}

/** The entry for a file, directory or link; `undefined` for what an image can't be given (`specialKind`). */
export function entryOf(paths: EntryPaths, stats: BigIntStats, files: FileSystem): ContextEntry | undefined {
  const { contextPath, absolutePath, relativePath } = paths;
  const bits = Number(stats.mode);
  const mode = bits & 0o7777;
  switch (bits & constants.S_IFMT) {
    case constants.S_IFREG: {
      const stat = fileStatOf(stats);
      return { type: "file", contextPath, absolutePath, relativePath, mode, size: Number(stats.size), stat };
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

export function fileStatOf(stats: BigIntStats): FileStat {
  return {
    device: stats.dev,
    inode: stats.ino,
    size: stats.size,
    // Most often the same; then one number will do for both, of which large contexts have many.
    mtimeNanoseconds: stats.mtimeNs === stats.ctimeNs ? stats.ctimeNs : stats.mtimeNs,
    ctimeNanoseconds: stats.ctimeNs,
  };
}

export function specialKind(stats: BigIntStats): string {
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
