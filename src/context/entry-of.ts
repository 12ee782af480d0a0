import type { BigIntStats } from "node:fs";
import type { ContextEntry, FileStat } from "./entry.ts";
import { fileError } from "./file-error.ts";
import type { FileSystem } from "./file-system.ts";

export interface EntryPaths {
  contextPath: string;
  absolutePath: string;
  relativePath: string;
}

/** The entry for a file, directory or link; `undefined` for what an image can't be given (`specialKind`). */
export function entryOf(paths: EntryPaths, stats: BigIntStats, files: FileSystem): ContextEntry | undefined {
  const mode = Number(stats.mode & 0o7777n);
  if (stats.isFile())
    return { type: "file", ...paths, mode, size: Number(stats.size), stat: fileStatOf(stats) };
  if (stats.isDirectory()) return { type: "directory", ...paths, mode };
  if (!stats.isSymbolicLink()) return undefined;
  try {
    return { type: "symlink", ...paths, mode, target: files.readLink(paths.absolutePath) };
  } catch (error) {
    throw fileError("read the link", paths.contextPath, error);
  }
}

export function fileStatOf(stats: BigIntStats): FileStat {
  return {
    device: stats.dev,
    inode: stats.ino,
    size: stats.size,
    mtimeNanoseconds: stats.mtimeNs,
    ctimeNanoseconds: stats.ctimeNs,
  };
}

export function specialKind(stats: BigIntStats): string {
  if (stats.isFIFO()) return "named pipe";
  if (stats.isSocket()) return "socket";
  return "device";
}
