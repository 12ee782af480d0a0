import {
  chmodSync,
  chownSync,
  lstatSync,
  readdirSync,
  rmSync,
  type Stats,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { resolveInRoot } from "./root-path.ts";
import { mountPoints } from "./sandbox-config.ts";
import { makeDirectories } from "./staging.ts";

/** The root directory of a new upper directory is the image's root as far as anyone can see: it has to look the same. */
export function copyRootAttributes(layerDirectory: string, upper: string): void {
  const root = lstatSync(layerDirectory);
  chownSync(upper, root.uid, root.gid);
  chmodSync(upper, root.mode & 0o7777);
  utimesSync(upper, root.atimeMs / 1000, root.mtimeMs / 1000);
}

/** Whether a command left the file system as it was. */
export function isUnchanged(layerDirectory: string, upper: string): boolean {
  return readdirSync(upper).length === 0 && hasSameAttributes(lstatSync(layerDirectory), lstatSync(upper));
}

/** What was made for the sandbox's own mounts, by its path below the upper directory, the deepest last. */
export type MadeMountPoints = ReadonlyMap<string, Stats>;

/**
 * The skeleton layer has the mount points of nearly every image. Makes what is missing all the same: where a link in the
 * image (`/etc/resolv.conf` of a machine with systemd-resolved) leads to a file that is not there. Call it on a fresh
 * upper directory, so that all that is in there afterwards is known to be made here.
 */
export function provideMountPoints(root: string, upper: string): MadeMountPoints {
  const made = new Map<string, Stats>();
  for (const point of mountPoints) {
    const found = resolveInRoot(root, point.path, { followLast: true });
    if (found.stats !== undefined) continue;
    makeDirectories(root, point.isDirectory ? found.inside : dirname(found.inside), `mount ${point.path}`);
    if (!point.isDirectory) writeFileSync(found.path, "");
    const components = found.inside.split("/").slice(1);
    for (let depth = 1; depth <= components.length; depth++) {
      const path = components.slice(0, depth).join("/");
      const stats = lstatSync(join(upper, path), { throwIfNoEntry: false });
      if (stats !== undefined) made.set(path, stats);
    }
  }
  return made;
}

/** Takes away again what `provideMountPoints` made, as far as the command made no use of it. */
export function removeMountPoints(upper: string, made: MadeMountPoints): void {
  for (const [path, before] of [...made].reverse()) {
    const stats = lstatSync(join(upper, path), { throwIfNoEntry: false });
    if (stats === undefined || !hasSameAttributes(stats, before)) continue;
    const isUnused = stats.isDirectory() ? readdirSync(join(upper, path)).length === 0 : stats.size === 0;
    if (isUnused) rmSync(join(upper, path), { recursive: true });
  }
}

function hasSameAttributes(one: Stats, other: Stats): boolean {
  return one.mode === other.mode && one.uid === other.uid && one.gid === other.gid;
}
