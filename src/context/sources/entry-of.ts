import { constants, type Stats } from "node:fs";
import type { BoughError } from "../../errors.ts";
import { mayBeReplaced, readError, undecodableTarget } from "../file-system/file-error.ts";
import type { FileSystem } from "../file-system/file-system.ts";
import type { ContextEntry, EntryPaths, FileStat } from "./entry.ts";
import { specialKind } from "./special-file.ts";

export function entryOf(paths: EntryPaths, stats: Stats, files: FileSystem): ContextEntry {
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
    case "special": {
      const { mtimeMs } = stats;
      return { type, contextPath, absolutePath, relativePath, mode, mtimeMs, special: specialKind(stats) };
    }
  }
}

export function entryType({ mode }: Stats): ContextEntry["type"] {
  switch (mode & constants.S_IFMT) {
    case constants.S_IFREG:
      return "file";
    case constants.S_IFDIR:
      return "directory";
    case constants.S_IFLNK:
      return "symlink";
    default:
      return "special";
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

export function readTarget(
  { contextPath, absolutePath }: Omit<EntryPaths, "relativePath">,
  files: FileSystem,
): string {
  let target: string;
  let undecodable: BoughError | undefined;
  try {
    target = files.readLink(absolutePath);
    if (mayBeReplaced(target)) undecodable = undecodableTarget(contextPath, absolutePath);
  } catch (error) {
    throw readError("read the link", contextPath, error);
  }
  if (undecodable !== undefined) throw undecodable;
  return target;
}
