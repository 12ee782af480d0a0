import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  type Stats,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { BoughError } from "../../../errors.ts";
import { resolveInRoot } from "./root-path.ts";

/** The directories that the sandbox mounts its own file systems on: what an image has there is not to be seen inside. */
export const coveredDirectories = ["/dev", "/proc", "/sys"] as const;

/** The root directory of a new upper directory is the image's root as far as anyone can see: it has to look the same. */
export function copyRootAttributes(layerDirectory: string, upper: string): void {
  const root = lstatSync(layerDirectory);
  chownSync(upper, root.uid, root.gid);
  chmodSync(upper, root.mode & 0o7777);
  utimesSync(upper, root.atimeMs / 1000, root.mtimeMs / 1000);
}

/** Returns whether a command left the file system as it was. */
export function isUnchanged(layerDirectory: string, upper: string): boolean {
  return readdirSync(upper).length === 0 && hasSameAttributes(lstatSync(layerDirectory), lstatSync(upper));
}

/** Where the sandbox's own files are mounted, as the image sees it; no part of these paths is a link. */
export interface MountPoints {
  resolvConf: string;
  hosts: string;
  /** What was made for them, by its path below the upper directory, the deepest last. */
  made: Map<string, Stats>;
}

/**
 * Sees to it that runc, which mounts and writes before it changes the root, meets no link of the image on its way: runc 1.1.5
 * follows `/dev -> ../../home/you` out of the image, and makes and removes files there. What stands in the place of a
 * directory is replaced by one; `/etc/resolv.conf` and `/etc/hosts` are mounted where the image's links lead.
 *
 * Call it when all files are staged and before the command runs: nothing else changes the tree meanwhile.
 */
export function provideMountPoints(root: string, upper: string): MountPoints {
  const place: Place = { root, upper, made: new Map() };
  for (const path of coveredDirectories) provideDirectory(place, path);
  return {
    resolvConf: provideFile(place, "/etc/resolv.conf"),
    hosts: provideFile(place, "/etc/hosts"),
    made: place.made,
  };
}

/** Makes an empty file or directory to mount at, at a path without links where nothing is. */
export function provideMountPoint(
  place: Place,
  path: string,
  type: "file" | "directory",
  mode: number,
): void {
  noteMade(place, path, () => makeMountPoint(place.root, path, type, mode));
}

/** Makes a mount point as `provideMountPoint` does, in a tree that is thrown away. */
export function makeMountPoint(root: string, path: string, type: "file" | "directory", mode: number): void {
  const directory = makeParent(root, path);
  const made = join(directory, basename(path));
  if (type === "file") writeFileSync(made, "", { flag: "wx" });
  else mkdirSync(made);
  chmodSync(made, mode);
}

/** Makes the directory that `mount` is in, where missing: root's, 0755. Returns its path on this machine. */
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
    mkdirSync(path);
    chmodSync(path, 0o755);
  }
  return path;
}

/** Takes away again what `provideMountPoints` made, as far as the command made no use of it. */
export function removeMountPoints(upper: string, { made }: MountPoints): void {
  for (const [path, before] of [...made].reverse()) {
    const stats = lookUp(upper, path);
    if (stats === undefined || !hasSameAttributes(stats, before)) continue;
    const isUnused = stats.isDirectory() ? readdirSync(join(upper, path)).length === 0 : stats.size === 0;
    if (isUnused) rmSync(join(upper, path), { recursive: true });
  }
}

/** A mounted root, its upper directory, and what is noted of it. */
export interface Place {
  root: string;
  upper: string;
  made: Map<string, Stats>;
}

/** The skeleton layer has them where an image lacks them. */
function provideDirectory(place: Place, path: string): void {
  const stats = lstatSync(join(place.root, path), { throwIfNoEntry: false });
  if (stats?.isDirectory()) return;
  noteMade(place, path, () => {
    if (stats !== undefined) remove(place, path);
    mkdirSync(join(place.root, path));
    chmodSync(join(place.root, path), 0o755);
  });
}

/**
 * The skeleton has these, too, but a link of the image (`/etc/resolv.conf` of a machine with systemd-resolved) can lead to a
 * file that is not there. One that leads to `/proc/net/pnp` or `/dev/null` is replaced: that is not the image's any more.
 */
function provideFile(place: Place, path: string): string {
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
  noteMade(place, found.inside, () => {
    if (isLost) remove(place, found.inside);
    makeMountPoint(root, found.inside, "file", 0o644);
  });
  return found.inside;
}

/** Returns whether a path without links leads to or below one of `directories`. */
function isBelow(path: string, directories: readonly string[]): boolean {
  return directories.some((directory) => path === directory || path.startsWith(`${directory}/`));
}

/** An image's own entry comes back with the upper directory's; one that is in there itself was staged, and would be lost. */
function remove({ root, upper }: Place, path: string): void {
  if (lookUp(upper, path.slice(1)) !== undefined) {
    throw new BoughError(`cannot put a file at ${path}: the sandbox mounts its own there`);
  }
  rmSync(join(root, path));
}

/** Notes what `make` adds to the upper directory on the way to `path`. */
function noteMade({ upper, made }: Place, path: string, make: () => void): void {
  const components = path.split("/").slice(1);
  const prefixes = components.map((_, index) => components.slice(0, index + 1).join("/"));
  const added = prefixes.filter((prefix) => lookUp(upper, prefix) === undefined);
  make();
  for (const prefix of added) {
    const stats = lookUp(upper, prefix);
    if (stats !== undefined) made.set(prefix, stats);
  }
}

/** Follows no link: a command may have replaced a directory by a link to this machine's own files. */
function lookUp(upper: string, path: string): Stats | undefined {
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

function hasSameAttributes(one: Stats, other: Stats): boolean {
  return one.mode === other.mode && one.uid === other.uid && one.gid === other.gid;
}
