import { chmodSync, lstatSync, readdirSync, rmSync, type Stats, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { BoughError } from "../../../errors.ts";
import { hasSameOwnerAndMode, makeDirectory } from "../../system/owner-and-mode.ts";
import { resolveInRoot } from "./root-path.ts";

/** Directories that the sandbox mounts its own file systems on, which hide the image's content there. */
export const coveredDirectories = ["/dev", "/proc", "/sys"] as const;

/** Returns true if a command has left the file system unchanged. */
export function isUnchanged(upper: string): boolean {
  return readdirSync(upper).length === 0;
}

/** The paths in the image at which the sandbox's own files are mounted. They contain no links. */
export interface MountPoints {
  resolvConf: string;
  hosts: string;
  /** Entries made for the mounts, by their paths below the upper directory; a directory comes before its entries. */
  made: Map<string, Stats>;
}

/**
 * Prepares mount points so that runc, which mounts and writes before it changes the root, follows no link of the image: runc
 * 1.1.5 follows `/dev -> ../../home/you` out of the image, and makes and removes files there. Replaces what is in the place of a
 * directory. `/etc/resolv.conf` and `/etc/hosts` are mounted where the image's links lead.
 *
 * Call it after all files are staged and before the command runs: nothing else changes the tree meanwhile.
 */
export function provideMountPoints(root: string, upper: string): MountPoints {
  const place: MountPlace = { root, upper, made: new Map() };
  for (const path of coveredDirectories) provideDirectory(place, path);
  return {
    resolvConf: provideFile(place, "/etc/resolv.conf"),
    hosts: provideFile(place, "/etc/hosts"),
    made: place.made,
  };
}

/** Makes an empty file or directory to mount on, at a path without links where nothing exists. */
export function provideMountPoint(
  place: MountPlace,
  path: string,
  type: "file" | "directory",
  mode: number,
): void {
  recordMade(place, path, () => makeMountPoint(place.root, path, type, mode));
}

/** Makes a mount point like `provideMountPoint`, in a tree that is discarded afterwards. */
export function makeMountPoint(root: string, path: string, type: "file" | "directory", mode: number): void {
  const directory = makeParent(root, path);
  const made = join(directory, basename(path));
  if (type === "directory") makeDirectory(made, mode);
  else {
    writeFileSync(made, "", { flag: "wx" });
    chmodSync(made, mode);
  }
}

/** Makes the parent directory of `mount` if missing, with owner root and mode 0755. Returns its path on this machine. */
function makeParent(root: string, mount: string): string {
  const found = resolveInRoot(root, dirname(mount), { followLast: true });
  if (found.stats?.isDirectory()) return found.path;
  let path = root;
  for (const component of found.inside.split("/").filter((name) => name !== "")) {
    path = join(path, component);
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats?.isDirectory()) continue;
    if (stats !== undefined)
      throw new BoughError(
        `cannot mount ${mount}: ${path.slice(root.length)} in the image is not a directory`,
      );
    makeDirectory(path);
  }
  return path;
}

/** Removes what `provideMountPoints` made, unless the command has used it. */
export function removeMountPoints(upper: string, { made }: MountPoints): void {
  for (const [path, before] of [...made].reverse()) {
    const stats = lstatBelow(upper, path);
    if (stats === undefined || !hasSameOwnerAndMode(stats, before)) continue;
    const isUnused = stats.isDirectory() ? readdirSync(join(upper, path)).length === 0 : stats.size === 0;
    if (isUnused) rmSync(join(upper, path), { recursive: true });
  }
}

/** A mounted root, its upper directory, and the entries made in it. */
export interface MountPlace {
  root: string;
  upper: string;
  made: Map<string, Stats>;
}

/** Makes a directory where the image has another file. The skeleton layer has the directories that an image lacks. */
function provideDirectory(place: MountPlace, path: string): void {
  const stats = lstatSync(join(place.root, path), { throwIfNoEntry: false });
  if (stats?.isDirectory()) return;
  recordMade(place, path, () => {
    if (stats !== undefined) remove(place, path);
    makeDirectory(join(place.root, path));
  });
}

/**
 * Provides a file to mount on, and returns its path. The skeleton has these files too, but a link of the image (`/etc/resolv.conf` of a machine with systemd-resolved) can lead to a
 * missing file. A link to `/proc/net/pnp` or `/dev/null` is replaced: the image's content there is hidden.
 */
function provideFile(place: MountPlace, path: string): string {
  const { root } = place;
  const followed = resolveInRoot(root, path, { followLast: true });
  const isLost = isBelow(followed.inside, coveredDirectories);
  const found = isLost ? resolveInRoot(root, path, { followLast: false }) : followed;
  if (isBelow(found.inside, coveredDirectories)) {
    throw new BoughError(
      `the sandbox cannot mount ${path}: ${dirname(path)} in the image leads to ${dirname(found.inside)}`,
    );
  }
  if (found.stats?.isDirectory()) {
    throw new BoughError(`the sandbox cannot mount ${path}: there is a directory in the image`);
  }
  if (found.stats !== undefined && !isLost) return found.inside;
  recordMade(place, found.inside, () => {
    if (isLost) remove(place, found.inside);
    makeMountPoint(root, found.inside, "file", 0o644);
  });
  return found.inside;
}

/** Returns true if a path without links is one of `directories`, or below one. */
function isBelow(path: string, directories: readonly string[]): boolean {
  return directories.some((directory) => path === directory || path.startsWith(`${directory}/`));
}

/** Hides an entry of the image's layers while the command runs. Throws for a staged one, which would be lost. */
function remove({ root, upper }: MountPlace, path: string): void {
  if (lstatBelow(upper, path.slice(1)) !== undefined) {
    throw new BoughError(`cannot put a file at ${path}: the sandbox mounts its own file there`);
  }
  rmSync(join(root, path));
}

/** Records what `make` adds to the upper directory along `path`. */
function recordMade({ upper, made }: MountPlace, path: string, make: () => void): void {
  const components = path.split("/").slice(1);
  const prefixes = components.map((_, index) => components.slice(0, index + 1).join("/"));
  const added = prefixes.filter((prefix) => lstatBelow(upper, prefix) === undefined);
  make();
  for (const prefix of added) {
    const stats = lstatBelow(upper, prefix);
    if (stats !== undefined) made.set(prefix, stats);
  }
}

/** Calls lstat(2) without following links on the way: a command may have replaced a directory by a link to this machine's own files. */
function lstatBelow(upper: string, path: string): Stats | undefined {
  let reached = upper;
  let stats: Stats | undefined;
  for (const component of path.split("/")) {
    if (stats !== undefined && !stats.isDirectory()) return undefined;
    reached = join(reached, component);
    stats = lstatSync(reached, { throwIfNoEntry: false });
    if (stats === undefined) return undefined;
  }
  return stats;
}
