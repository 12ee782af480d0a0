/** The limits that the kernel can enforce here, by control groups that this process may make. */
import { accessSync, constants, existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { readOptional } from "../../../open-for-reading.ts";

export const controllerNames = ["memory", "pids", "cpu"] as const;
type ControllerName = (typeof controllerNames)[number];

/** The version of control groups that can limit each resource. */
export type Controllers = Partial<Record<ControllerName, { version: 1 | 2 }>> & {
  memory?: { version: 1 | 2; countsSwap: boolean };
};

/** Returns the controllers that a container's group can use. Enables them for it in version 2, as runc would. */
export function usableControllers(hierarchies: readonly Hierarchy[]): Controllers {
  const usable: Controllers = {};
  for (const hierarchy of hierarchies) {
    const { version } = hierarchy;
    const parent = containerParent(hierarchy);
    const available = !canMakeGroup(hierarchy)
      ? []
      : version === 1
        ? controllerNames.filter((name) => hierarchy.controllers.includes(name))
        : enableInTwo(hierarchy.mountPoint, parent, controllerNames);
    for (const name of available) {
      if (name === "memory") usable.memory ??= { version, countsSwap: countsSwap(hierarchy) };
      else usable[name] ??= { version };
    }
  }
  return usable;
}

/**
 * Returns true if this process may make a group for a container and enter it. In version 2, moving a process from one group to
 * another requires write access to the process list of their common ancestor.
 */
export function canMakeGroup(hierarchy: Hierarchy): boolean {
  const parent = containerParent(hierarchy);
  return isWritable(parent) && (hierarchy.version === 1 || isWritable(join(parent, "cgroup.procs")));
}

/**
 * Returns the controllers that groups below `directory` can use. Enables them where they aren't yet, from the mount point down:
 * systemd enables controllers only for those slices whose units ask for them. It is called for every command, so a group with all of
 * them takes a single read.
 */
function enableInTwo(
  mountPoint: string,
  directory: string,
  wanted: readonly ControllerName[],
): readonly ControllerName[] {
  const path = join(directory, "cgroup.subtree_control");
  const enabled = readWords(path);
  const missing = wanted.filter((name) => !enabled.includes(name));
  if (missing.length === 0) return wanted;
  if (hasOwnProcesses(directory)) return wanted.filter((name) => enabled.includes(name));
  const present = readWords(join(directory, "cgroup.controllers"));
  const absent = missing.filter((name) => !present.includes(name));
  const given: readonly string[] =
    absent.length === 0 || directory === mountPoint
      ? []
      : enableInTwo(mountPoint, dirname(directory), absent);
  const added = missing.filter(
    (name) => (present.includes(name) || given.includes(name)) && enable(path, name),
  );
  return wanted.filter((name) => enabled.includes(name) || added.includes(name));
}

function enable(path: string, name: ControllerName): boolean {
  try {
    writeFileSync(path, `+${name}`);
    return true;
  } catch {
    // The group has another owner.
    return false;
  }
}

/**
 * Returns true for a group of version 2 with processes of its own, such as a container's top group. Enabling memory for the groups
 * below fails there. Enabling another controller succeeds, but then no process can enter those groups any more
 * (cgroups(7), "Threaded mode"). Only the machine's root group, which has no type, may have both.
 */
export function hasOwnProcesses(directory: string): boolean {
  return existsSync(join(directory, "cgroup.type")) && readText(join(directory, "cgroup.procs")) !== "";
}

/** Returns true if swap can be limited. It can't if the kernel was started without accounting for swap. */
function countsSwap({ version, directory: own }: Hierarchy): boolean {
  if (version === 1) return existsSync(join(own, "memory.memsw.limit_in_bytes"));
  // The root group has no limits, and so none of these files.
  return existsSync(join(own, "memory.swap.max")) || !existsSync(join(own, "memory.max"));
}

/** Returns the smallest memory limit of this process's groups, which containers can't exceed, in bytes; `undefined` if there is none. */
export function ownMemoryLimit(hierarchies: readonly Hierarchy[]): number | undefined {
  const limits: number[] = [];
  for (const { version, controllers, directory, mountPoint } of hierarchies) {
    if (version === 1 && !controllers.includes("memory")) continue;
    const file = version === 1 ? "memory.limit_in_bytes" : "memory.max";
    for (let group = directory; group.startsWith(mountPoint); group = join(group, "..")) {
      const limit = Number(readText(join(group, file)));
      // Version 1 has a number near 2^63 for "no limit", version 2 a word.
      if (limit > 0 && limit < 2 ** 62) limits.push(limit);
    }
  }
  return limits.length === 0 ? undefined : Math.min(...limits);
}

/** The numbers of processes that the kernel has killed in a group for its memory limit, and has refused to the group. */
export interface LimitEvents {
  outOfMemory: number;
  outOfProcesses: number;
}

/** Reads the events of a container's groups. `groups` has their directories by controller, as in runc's state; version 2's is named "". */
export function readLimitEvents(groups: Readonly<Record<string, string>>): LimitEvents {
  const count = (group: string | undefined, file: string, key: string) =>
    group === undefined ? undefined : readCount(join(group, file), key);
  const unified = groups[""];
  return {
    outOfMemory:
      count(groups.memory, "memory.oom_control", "oom_kill") ??
      count(unified, "memory.events", "oom_kill") ??
      0,
    outOfProcesses: count(groups.pids, "pids.events", "max") ?? count(unified, "pids.events", "max") ?? 0,
  };
}

/** Returns the number in a line such as `oom_kill 3`. */
function readCount(path: string, key: string): number | undefined {
  const found = new RegExp(`^${key} (\\d+)$`, "m").exec(readText(path))?.[1];
  return found === undefined ? undefined : Number(found);
}

function readWords(path: string): string[] {
  return readText(path).split(/\s+/);
}

function readText(path: string): string {
  return readOptional(path).trim();
}

export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** One of the hierarchies that this process has control groups in: version 1, 2, or both. */
export interface Hierarchy {
  version: 1 | 2;
  /** The controllers mounted here in version 1. Version 2 lists them in its files. */
  controllers: readonly string[];
  /** This process's own group. */
  directory: string;
  /** The root of the hierarchy, as far as this process sees it. */
  mountPoint: string;
}

/** The last result of `ownHierarchies`. */
let found: { groups: string; hierarchies: readonly Hierarchy[] } | undefined;

/** Returns the hierarchies of this process. It is called several times for each command. A process can be moved to another group, but the mount points stay. */
export function ownHierarchies(): readonly Hierarchy[] {
  const groups = readFileSync("/proc/self/cgroup", "utf8");
  if (found?.groups !== groups)
    found = { groups, hierarchies: findHierarchies(groups, readFileSync("/proc/self/mountinfo", "utf8")) };
  return found.hierarchies;
}

/** Finds hierarchies in the contents of `/proc/self/cgroup` and `/proc/self/mountinfo`. */
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
  const keyOf = ({ version, controllers }: Hierarchy) => [version, ...controllers].join();
  return mounted.filter((one, index) => mounted.findIndex((other) => keyOf(one) === keyOf(other)) === index);
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
