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
   * True if it gives a file under other names than its directory lists: with another case of letters, or another form of accents.
   * In an image only the one that is listed counts, and ignore rules are about that.
   */
  foldsNames?: boolean;
}

const nativeFileSystem: FileSystem = {
  readDirectory: (path) => withOpenDirectory(path, (place) => readdirSync(place)),
  // This may be the state of another file if a directory is replaced by a link: then the file itself can't be opened.
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

/** Converts a path that comes from the system or from a user to that form. */
export const localPath: (path: string) => string =
  process.platform === "win32" ? withSlashes : (path) => path;

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
 * Returns a file system that keeps its first answers, for many questions about one moment. It remembers a limited number of
 * answers, the first ones, as those paths are asked for repeatedly. For the rest of a large context, `files` is asked each time.
 */
export function cacheFileSystem(files: FileSystem): FileSystem {
  return {
    ...files,
    readDirectory: remember((path) => files.readDirectory(path)),
    stat: remember((path) => files.stat(path)),
    readLink: remember((path) => files.readLink(path)),
  };
}

const maxRemembered = 10_000;

/** Failures are not remembered: they end the search that asked. */
function remember<Answer extends object | string>(ask: (path: string) => Answer): (path: string) => Answer {
  const answers = new Map<string, Answer>();
  return (path) => {
    const known = answers.get(path);
    if (known !== undefined) return known;
    const answer = ask(path);
    if (answers.size < maxRemembered) answers.set(path, answer);
    return answer;
  };
}
