/** The control groups of this process: version 1, 2, or both. */
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

export interface Hierarchy {
  version: 1 | 2;
  /** The controllers mounted here in version 1. Version 2 lists them in its files. */
  controllers: readonly string[];
  /** This process's own group. */
  directory: string;
  /** The root of the hierarchy, as far as this process sees it. */
  mountPoint: string;
}

/** The last result. */
let found: { groups: string; hierarchies: readonly Hierarchy[] } | undefined;

/** Each command asks several times. A process can be moved to another group, but the mount points stay. */
export function ownHierarchies(): readonly Hierarchy[] {
  const groups = readFileSync("/proc/self/cgroup", "utf8");
  if (found?.groups !== groups)
    found = { groups, hierarchies: findHierarchies(groups, readFileSync("/proc/self/mountinfo", "utf8")) };
  return found.hierarchies;
}

/** `groups` and `mounts`: the contents of `/proc/self/cgroup` and `/proc/self/mountinfo`. */
export function findHierarchies(groups: string, mounts: string): Hierarchy[] {
  const own = linesOf(groups).map((line) => {
    const [, controllers = "", ...path] = line.split(":");
    return { controllers: controllers === "" ? [] : controllers.split(","), path: path.join(":") };
  });
  const mounted = linesOf(mounts).flatMap((line): Hierarchy[] => {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , root = "/", mountPoint = ""] = before.split(" ");
    const [type = "", , options = ""] = after.split(" ");
    if (type !== "cgroup" && type !== "cgroup2") return [];
    const version = type === "cgroup" ? 1 : 2;
    return own.flatMap(({ controllers, path }): Hierarchy[] => {
      // `name=systemd` and `cpu,cpuacct` are mounted with these options, in this order or another.
      const [first] = controllers;
      const isMounted =
        version === 2 ? first === undefined : first !== undefined && options.split(",").includes(first);
      const below = relative(root, path);
      // A group outside of this process's namespace, or of the mounted part, can't be reached through this mount.
      if (!isMounted || [path, root, below].some((name) => name.split("/").includes(".."))) return [];
      return [{ version, controllers, directory: join(mountPoint, below), mountPoint }];
    });
  });
  // A second mount, such as a bind for a container, shows the same groups.
  const isFirst = (one: Hierarchy, index: number) =>
    mounted.findIndex((other) => isSame(one, other)) === index;
  return mounted.filter(isFirst);
}

function isSame(one: Hierarchy, other: Hierarchy): boolean {
  return one.version === other.version && one.controllers.join() === other.controllers.join();
}

/**
 * Returns the directory in which runc makes a container's group if its configuration names none. In version 2 it is the parent: a
 * group with processes of its own can't delegate controllers.
 */
export function containerParent({ version, directory, mountPoint }: Hierarchy): string {
  return version === 1 || directory === mountPoint ? directory : dirname(directory);
}

export function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}
