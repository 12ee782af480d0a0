import { closeSync, constants, openSync } from "node:fs";
import { libc } from "../../system/libc.ts";

/** The value of `CLONE_FS` in linux/sched.h. */
const workingDirectory = 0x200;

/**
 * Mounts an overlay in the mount namespace of another process, which must be running. mount(8) would take longer to start than a
 * container takes to end. Returns false if the system does not allow it, or if the mount fails.
 *
 * @param from a directory as that process sees it
 * @param place a path relative to `from`, as are those in `options`
 */
export function mountOverlay(pid: number, mount: { from: string; place: string; options: string }): boolean {
  const open: number[] = [];
  const openPath = (path: string, flags = constants.O_DIRECTORY) => {
    const descriptor = openSync(path, constants.O_RDONLY | flags);
    open.push(descriptor);
    return descriptor;
  };
  try {
    const theirs = openPath(`/proc/${pid}/ns/mnt`, 0);
    const from = openPath(`/proc/${pid}/root${mount.from}`);
    const own = openPath("/proc/self/ns/mnt", 0);
    const root = openPath("/");
    const current = openPath(".");
    const { unshare, setns, fchdir, chroot, mount: mountFrom } = libc();
    // setns(2) changes the root and working directory, too, and refuses to do that to other threads.
    if (unshare(workingDirectory) !== 0 || setns(theirs, 0) !== 0) return false;
    const isMounted =
      fchdir(from) === 0 &&
      mountFrom(text("overlay"), text(mount.place), text("overlay"), 0n, text(mount.options)) === 0;
    const isBack = [setns(own, 0), fchdir(root), chroot(text(".")), fchdir(current)].every(
      (result) => result === 0,
    );
    if (!isBack) throw new Error("bough could not return to its mount namespace");
    return isMounted;
  } catch (error) {
    if (error instanceof Error && "code" in error) return false;
    throw error;
  } finally {
    for (const descriptor of open) closeSync(descriptor);
  }
}

function text(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}
