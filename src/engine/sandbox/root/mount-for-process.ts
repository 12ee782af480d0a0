import { closeSync, constants, openSync } from "node:fs";
import { libc } from "../../system/libc.ts";
import { type NamespaceMount, noSwap } from "./namespace-mount.ts";

/** The value of `CLONE_FS` in linux/sched.h. */
const rootAndWorkingDirectory = 0x200;
/** Options that are flags of mount(2), by their values in linux/mount.h. */
const mountFlags: ReadonlyMap<string, bigint> = new Map([
  ["nosuid", 2n],
  ["nodev", 4n],
]);

/**
 * Makes mounts in the mount namespace of another process, which must be running: mount(8) would take some milliseconds to start.
 * Ends with the first one that is a bind mount, fails, or is not allowed, and returns the number of those made.
 *
 * @param from a directory as that process sees it: paths in mounts are relative to it
 */
export function mountForProcess(pid: number, from: string, mounts: readonly NamespaceMount[]): number {
  const opened: number[] = [];
  const open = (path: string, flags = constants.O_DIRECTORY) => {
    const descriptor = openSync(path, constants.O_RDONLY | flags);
    opened.push(descriptor);
    return descriptor;
  };
  try {
    const theirs = { namespace: open(`/proc/${pid}/ns/mnt`, 0), root: open(`/proc/${pid}/root`) };
    const directory = open(`/proc/${pid}/root${from}`);
    const own = { namespace: open("/proc/self/ns/mnt", 0), root: open("/") };
    const current = open(".");
    // Entering a namespace changes the root and the working directory, which other threads must not share.
    if (libc().unshare(rootAndWorkingDirectory) !== 0 || libc().setns(theirs.namespace, 0) !== 0) return 0;
    const made = place(theirs.root, directory) ? mountAll(mounts) : 0;
    if (libc().setns(own.namespace, 0) !== 0 || !place(own.root, current))
      throw new Error("bough could not return to its mount namespace");
    return made;
  } catch (error) {
    // The process has ended, or there is no such library.
    if (error instanceof Error && "code" in error) return 0;
    throw error;
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}

/** Sets this thread's root and working directory, by descriptors. */
function place(root: number, directory: number): boolean {
  const { fchdir, chroot } = libc();
  return fchdir(root) === 0 && chroot(text(".")) === 0 && fchdir(directory) === 0;
}

function mountAll(mounts: readonly NamespaceMount[]): number {
  const failed = mounts.findIndex((mount) => {
    if (mount.type === "bind") return true;
    const { type, place, options } = mount;
    if (mountOne(type, place, options)) return false;
    return !options.endsWith(noSwap) || !mountOne(type, place, options.slice(0, -noSwap.length));
  });
  return failed === -1 ? mounts.length : failed;
}

function mountOne(type: string, place: string, options: string): boolean {
  const words = options.split(",");
  const flags = words.reduce((sum, word) => sum | (mountFlags.get(word) ?? 0n), 0n);
  const data = words.filter((word) => !mountFlags.has(word)).join(",");
  return libc().mount(text(type), text(place), text(type), flags, text(data)) === 0;
}

function text(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}
