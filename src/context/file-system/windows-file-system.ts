/** What Windows has otherwise, for code that knows POSIX paths and modes. */
import type { Stats } from "node:fs";
import type { FileSystem } from "./file-system.ts";

const permissionBits = 0o7777;
/** What Docker gives files that come from Windows, where there is no mode: scripts have to be executable. */
const permissions = 0o755;

/**
 * `files` with `/` alone for a separator, and with modes as Docker makes them up. To Windows a backslash is a separator,
 * too: a path with one could lead out of the context unseen, and no file has such a name.
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
