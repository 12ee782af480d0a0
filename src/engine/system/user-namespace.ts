import { readFileSync } from "node:fs";
import { once } from "../../once.ts";
import { isInUserNamespace } from "../../own-path.ts";
import { errorCode } from "../../system-error.ts";

/** Returns true if the group exists in this process's user namespace: that of a single user may have only the group 0. */
export function hasGroup(group: number): boolean {
  return groupRanges().some(({ first, count }) => group >= first && group < first + count);
}

interface IdRange {
  first: number;
  count: number;
}

/** The groups of this process's user namespace. They are read once, since a process stays in its namespace, and each command needs them. */
const groupRanges = once((): readonly IdRange[] => {
  try {
    // Each line has the first id inside the namespace, the first one outside, and their number.
    const lines = readFileSync("/proc/self/gid_map", "utf8").trim().split("\n");
    return lines.map((line) => {
      const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number);
      return { first, count };
    });
  } catch (error) {
    if (errorCode(error) === "ENOENT") return [{ first: 0, count: Number.POSITIVE_INFINITY }];
    throw error;
  }
});

/** The bits of capabilities in a set, from linux/capability.h. */
const bits = {
  setgid: 1n << 6n,
  setuid: 1n << 7n,
  sysAdmin: 1n << 21n,
  sysResource: 1n << 24n,
  setfcap: 1n << 31n,
};
const sets = { effective: "CapEff", bounding: "CapBnd" };

/** Returns true if this process has a capability in its user namespace, or, for the set `bounding`, if a program that it starts can have it. */
export function hasCapability(name: keyof typeof bits, set: keyof typeof sets = "effective"): boolean {
  const status = readFileSync("/proc/self/status", "utf8");
  const [, text = "0"] = new RegExp(`^${sets[set]}:\\s+(\\w+)`, "m").exec(status) ?? [];
  return (BigInt(`0x${text}`) & bits[name]) !== 0n;
}

/** A file system that shows the kernel's state. */
type KernelView = "proc" | "sysfs";

/**
 * Returns true if a process in a user namespace may mount another `/proc`, or `/sys`. The kernel allows it only if there is one of which
 * nothing is hidden (mount_namespaces(7)), and container engines mount files over some of theirs. `mounts` is `/proc/self/mountinfo`.
 */
export function canMountAnother(view: KernelView, mounts: string): boolean {
  const all = mounts.split("\n").map((line) => {
    const [, , , root = "", point = ""] = line.split(" ");
    return { root, point, type: / - (\S+)/.exec(line)?.[1] };
  });
  return all
    .filter(({ type, root }) => type === view && root === "/")
    .some(({ point: view }) => !all.some(({ point }) => hides(point, view)));
}

function hides(point: string, view: string): boolean {
  return point.startsWith(`${view}/`) && !alwaysEmpty.test(point.slice(view.length));
}

/** Directories that the kernel makes for mounts, and everything below them: a mount hides nothing there. */
const alwaysEmpty =
  /^\/(fs\/(bpf|cgroup|fuse\/connections|nfsd|pstore|resctrl|selinux)|kernel\/(config|debug|security|tracing)|sys\/fs\/binfmt_misc)(\/|$)/;

export type KernelViews = Readonly<Record<KernelView, boolean>>;

/** Returns which of these file systems this process can mount. */
export const mountableViews = once(
  (): KernelViews => (isInUserNamespace() ? viewsInUserNamespace() : { proc: true, sysfs: true }),
);

/** Returns which of these file systems this process could mount in a user namespace. */
export function viewsInUserNamespace(): KernelViews {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8");
  return { proc: canMountAnother("proc", mounts), sysfs: canMountAnother("sysfs", mounts) };
}
