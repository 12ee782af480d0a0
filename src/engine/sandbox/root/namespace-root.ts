/** The root directory of a mount namespace, which a chroot hides. These functions run in a process of their own (`ownProcess`). */
import { ptr } from "bun:ffi";
import { constants, fstatSync, openSync, readFileSync } from "node:fs";
import { libc, numericCalls } from "../../../programs/libc.ts";

/** The exit code of `findRoot` in a chroot. */
export const inChroot = 3;

/** Returns 0 if this process's root is that of its mount namespace, and `inChroot` if not. */
export function findRoot(): number {
  const own = openDirectory("/");
  // The namespace's root may have no /proc.
  const descriptors = openDirectory("/proc/self/fdinfo");
  enterNamespace("self");
  const ofNamespace = openDirectory("/");
  libc().fchdir(descriptors);
  return identify(own) === identify(ofNamespace) ? 0 : inChroot;
}

/**
 * Makes the root of a process the root of its mount namespace, and removes the machine's own from it. Otherwise the machine's would stay
 * above the root of a command, and a process that the runtime starts beside the command would begin there.
 */
export function replaceRoot(pid: string): number {
  const root = openDirectory(`/proc/${pid}/root`);
  enterNamespace(pid);
  const { fchdir, mount, umount2 } = libc();
  const [here, none] = [text("."), text("")];
  // unshare(1) has made the mounts private that the process can see; pivot_root(2) fails if the mount above its root is shared.
  mount(none, text("/"), none, recursive | isPrivate, none);
  const isReplaced =
    fchdir(root) === 0 &&
    numericCalls().syscall(pivotRoot, ptr(here), ptr(here), 0) === 0n &&
    umount2(here, detached) === 0;
  return isReplaced ? 0 : 1;
}

/** Moves this thread to a mount namespace: to its root, which is above that of a chroot. */
function enterNamespace(pid: string): void {
  const namespace = openSync(`/proc/${pid}/ns/mnt`, constants.O_RDONLY);
  const { unshare, setns } = libc();
  // Other threads share the root and the working directory, and the kernel does not change those.
  if (unshare(rootAndWorkingDirectory) !== 0 || setns(namespace, 0) !== 0)
    throw new Error(`can't enter the mount namespace of process ${pid}`);
}

/** Identifies a directory and the mount by which it is reached. The working directory must be `/proc/self/fdinfo`. */
function identify(descriptor: number): string {
  const { dev, ino } = fstatSync(descriptor);
  const [mount] = /^mnt_id:.*$/m.exec(readFileSync(String(descriptor), "utf8")) ?? [];
  return `${dev} ${ino} ${mount}`;
}

function openDirectory(path: string): number {
  return openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
}

function text(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}

/** The value of `CLONE_FS` in linux/sched.h. */
const rootAndWorkingDirectory = 0x200;
/** `MS_REC` and `MS_PRIVATE` */
const [recursive, isPrivate] = [1n << 14n, 1n << 18n];
/** `MNT_DETACH` */
const detached = 2;
/** The number of the system call pivot_root(2), for which the C library has no function. */
const pivotRoot = process.arch === "arm64" ? 41 : 155;
