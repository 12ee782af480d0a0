import { lstatSync, readdirSync, readlinkSync, type Stats } from "node:fs";
import { withOpenDirectory, withOpenParent } from "../../open-without-links.ts";

/**
 * The file-system calls of a walk. They block: for a large context, a promise for every file costs more than the file. The walk
 * itself yields to other work in between (`pace.ts`).
 */
export interface FileSystem {
  /** The names in a directory, in any order. */
  readDirectory(path: string): readonly string[];
  /** Returns facts about the path itself: a link is not followed. */
  stat(path: string): Stats;
  readLink(path: string): string;
  /**
   * True if a file opens under names that its directory does not list: in another case, or with another form of accents. An image
   * has only the listed name, and ignore rules match that.
   */
  foldsNames?: boolean;
}

const nativeFileSystem: FileSystem = {
  readDirectory: (path) => withOpenDirectory(path, (place) => readdirSync(place)),
  // If a link replaces a directory, this may be the state of another file. Opening that fails.
  stat: (path) => lstatSync(path),
  readLink: (path) => withOpenParent(path, (place) => readlinkSync(place)),
};

/** The machine's file system, with `/` in paths on every platform. Directories in paths must not be links. */
export const localFileSystem: FileSystem =
  process.platform === "win32"
    ? windowsFileSystem(nativeFileSystem)
    : { ...nativeFileSystem, foldsNames: process.platform === "darwin" };

/** False on Windows, where neither files have modes, nor every user may make links. */
export const keepsModes: boolean = process.platform !== "win32";

/** Converts a path of the system or of a user to the form with `/`. */
export const localPath: (path: string) => string =
  process.platform === "win32" ? withSlashes : (path) => path;

const permissionBits = 0o7777;
/** The permissions that Docker gives files from Windows, which has no modes: scripts have to be executable. */
const permissions = 0o755;

/**
 * Returns `files` with `/` as the only separator, and with the modes that Docker's client sends. Windows also treats a backslash as a
 * separator: a path with one could lead out of the context undetected, and no file has such a name.
 */
export function windowsFileSystem(files: FileSystem): FileSystem {
  return {
    readDirectory: (path) => files.readDirectory(checked(path)),
    stat: (path) => withPermissions(files.stat(checked(path))),
    readLink: (path) => withSlashes(files.readLink(checked(path))),
    foldsNames: true,
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

/**
 * Returns a file system that caches results, so that all of them are of one moment. It caches a limited number, the first ones,
 * since those paths are read repeatedly. For the rest of a large context, it calls `files` each time.
 */
export function cacheFileSystem(files: FileSystem): FileSystem {
  return {
    ...files,
    readDirectory: cached((path) => files.readDirectory(path)),
    stat: cached((path) => files.stat(path)),
    readLink: cached((path) => files.readLink(path)),
  };
}

const maxCached = 10_000;

/** Failures are not cached: they end the search. */
function cached<Result extends object | string>(call: (path: string) => Result): (path: string) => Result {
  const results = new Map<string, Result>();
  return (path) => {
    const known = results.get(path);
    if (known !== undefined) return known;
    const result = call(path);
    if (results.size < maxCached) results.set(path, result);
    return result;
  };
}
