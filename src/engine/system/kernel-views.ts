import { readFileSync } from "node:fs";
import { once } from "../../once.ts";
import { isInUserNamespace } from "./user-namespace.ts";

/** The file systems by which a process sees the kernel. */
type KernelView = "proc" | "sysfs";

/**
 * Returns whether a process in a user namespace may mount another `/proc`, or `/sys`. The kernel allows it only beside one of which
 * nothing is hidden (mount_namespaces(7)), and container engines mount files over some of theirs. `mounts`: `/proc/self/mountinfo`.
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

/** Directories that the kernel makes to be mounted on, with what is below them: nothing is hidden there. */
const alwaysEmpty =
  /^\/(fs\/(bpf|cgroup|fuse\/connections|nfsd|pstore|resctrl|selinux)|kernel\/(config|debug|security|tracing)|sys\/fs\/binfmt_misc)(\/|$)/;

export type KernelViews = Readonly<Record<KernelView, boolean>>;

/** Returns which of them this process can mount. */
export const mountableViews = once(
  (): KernelViews => (isInUserNamespace() ? viewsInUserNamespace() : { proc: true, sysfs: true }),
);

/** Returns which of them this process could mount in a user namespace. */
export function viewsInUserNamespace(): KernelViews {
  const mounts = readFileSync("/proc/self/mountinfo", "utf8");
  return { proc: canMountAnother("proc", mounts), sysfs: canMountAnother("sysfs", mounts) };
}
