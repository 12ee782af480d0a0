/** Adapts Windows to code that expects POSIX paths and modes. */
import type { Stats } from "node:fs";
import type { FileSystem } from "./file-system.ts";

const permissionBits = 0o7777;
/** The permissions that Docker gives files from Windows, which has no modes: scripts have to be executable. */
const permissions = 0o755;

/**
 * Returns `files` with `/` as the only separator, and with the modes that Docker makes up. Windows also treats a backslash as a
 * separator: a path with one could lead out of the context undetected, and no file has such a name.
 */
export function windowsFileSystem(files: FileSystem): FileSystem {
  return {
    readDirectory: (path) => files.readDirectory(checked(path)),
    stat: (path) => withPermissions(files.stat(checked(path))),
    readLink: (path) => withSlashes(files.readLink(checked(path))),
  };
}

export function withSlashes(path: string): string {
  return path.replaceAll("\\", "/");
}

function checked(path: string): string {
  if (!path.includes("\\")) return path;
  throw Object.assign(new Error(`no file on Windows is called ${path}`), { code: "ENOENT" });
}

function withPermissions(stats: Stats): Stats {
  if (!stats.isSymbolicLink()) stats.mode = (stats.mode & ~permissionBits) | permissions;
  return stats;
}
