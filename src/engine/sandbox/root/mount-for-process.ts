import { ptr } from "bun:ffi";
import { closeSync, constants, fstatSync, openSync, readFileSync, writeSync } from "node:fs";
import { BoughError } from "../../../errors.ts";
import { once } from "../../../once.ts";
import { libc, numericCalls } from "../../../programs/libc.ts";
import { errorCode } from "../../../system-error.ts";
import { type NamespaceMount, noSwap } from "./namespace-mount.ts";

/** The value of `CLONE_FS` in linux/sched.h. */
const rootAndWorkingDirectory = 0x200;
/** Maximum number of attempts to return to the own namespace. */
const maxReturns = 20;
/** Options that are flags of mount(2), by their values in linux/mount.h. */
const mountFlags: ReadonlyMap<string, bigint> = new Map([
  ["nosuid", 2n],
  ["nodev", 4n],
]);

/**
 * Makes mounts in the mount namespace of another process, which must be running: mount(8) would add 11 ms to each RUN (20 RUN of
 * `echo`: 2.1 s instead of 1.9 s), and could not leave a chroot. Ends with the first one that is a bind mount, fails, or is not allowed, and returns the number of those
 * made.
 *
 * @param from a directory as that process sees it: paths in mounts are relative to it
 * @param isInChroot true if bough and that process are in a chroot, whose root becomes that of the namespace
 */
export function mountForProcess(
  pid: number,
  from: string,
  mounts: readonly NamespaceMount[],
  { isInChroot = false } = {},
): number {
  const calls = callsFor(mounts);
  let made = 0;
  const make = () => {
    made = makeAll(calls);
  };
  const prepare = (root: number) => {
    makePrivate();
    if (isInChroot) replaceRoot(root);
  };
  visitNamespace(pid, prepare, make, from);
  return made;
}

/**
 * Moves this thread to the mount namespace of a process and back. Calls `atRoot` at the namespace's root, with the process's own
 * root directory, and `inside` at `from` in
 * the process's own root, which a chroot may have changed. Does nothing if this process may not enter the namespace.
 */
function visitNamespace(
  pid: number | "self",
  atRoot: (root: number) => void,
  inside: () => void = () => {},
  from = "",
): void {
  const opened: number[] = [];
  const open = (path: string, flags = constants.O_DIRECTORY) => {
    const descriptor = openSync(path, constants.O_RDONLY | flags);
    opened.push(descriptor);
    return descriptor;
  };
  try {
    const theirs = {
      namespace: open(`/proc/${pid}/ns/mnt`, 0),
      root: open(`/proc/${pid}/root`),
      directory: open(`/proc/${pid}/root${from}`),
    };
    const own = { namespace: open("/proc/self/ns/mnt", 0), root: open("/"), directory: open(".") };
    // In a user namespace, a process may be forbidden to enter even its own mount namespace: it could not return to it.
    if (!enter(own)) return;
    try {
      if (enter(theirs, atRoot)) inside();
    } finally {
      // An attempt fails if a thread starts at that moment. Few threads start one after the other.
      for (let attempt = 1; !enter(own); attempt++) if (attempt === maxReturns) endAtOnce();
    }
  } catch (error) {
    // The process has ended, or there is no such library.
    if (errorCode(error) === undefined) throw error;
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}

/**
 * Ends bough at once. In the command's namespace, each path that it went on to use would lead to other files. No handler runs, as
 * those remove files by their paths. The kernel ends all commands, and the next bough process recovers.
 */
function endAtOnce(): never {
  writeSync(2, "[ERROR] bough could not return to its own mount namespace, and stops\n");
  process.kill(process.pid, "SIGKILL");
  throw new Error("unreachable: the process has been killed");
}

/** The place of a thread, as open files. */
interface Place {
  namespace: number;
  root: number;
  directory: number;
}

/** Moves this thread. If it may not enter the namespace, it stays where it is. Calls `atRoot` at the namespace's own root. */
function enter({ namespace, root, directory }: Place, atRoot = (_root: number) => {}): boolean {
  const { unshare, setns, fchdir, chroot } = libc();
  // Entering a namespace changes the root and the working directory, which other threads must not share. JavaScriptCore may have
  // started a thread since the last call, and it shares them.
  if (unshare(rootAndWorkingDirectory) !== 0 || setns(namespace, 0) !== 0) return false;
  atRoot(root);
  return fchdir(root) === 0 && chroot(here) === 0 && fchdir(directory) === 0;
}

/**
 * Makes all mounts of a namespace private, as unshare(1) does. In a chroot, unshare reaches only those below the chroot, and
 * pivot_root(2) fails if the mount above is shared.
 */
function makePrivate(): void {
  libc().mount(none, text("/"), none, recursive | isPrivate, none);
}

/**
 * Makes `root` the root of the namespace, and removes the machine's own from it. Otherwise the machine's would stay above the root
 * of a command, and a process that the runtime starts beside the command would begin there.
 */
function replaceRoot(root: number): void {
  const { fchdir, umount2 } = libc();
  const at = ptr(here);
  const isReplaced =
    fchdir(root) === 0 &&
    numericCalls().syscall(pivotRoot, at, at, 0) === 0n &&
    umount2(here, detached) === 0;
  if (!isReplaced)
    throw new BoughError("the sandbox could not be made the root of its namespace in bough's chroot", {
      hint: "Run bough outside of the chroot, or enter it by pivot_root.",
    });
}

/** The number of the system call pivot_root(2), for which the C library has no function. */
const pivotRoot = process.arch === "arm64" ? 41 : 155;
/** `MNT_DETACH` */
const detached = 2;

const [recursive, isPrivate] = [1n << 14n, 1n << 18n];

/** The arguments of mount(2). */
type MountCall = Parameters<ReturnType<typeof libc>["mount"]>;

/** Returns calls for each mount, of which one must succeed. Made in advance, as little should run in another namespace. */
function callsFor(mounts: readonly NamespaceMount[]): MountCall[][] {
  return mounts.map((mount) => {
    if (mount.type === "bind") return [];
    const { type, place, options } = mount;
    const weaker = options.endsWith(noSwap) ? [options.slice(0, -noSwap.length)] : [];
    return [options, ...weaker].map((words) => callFor(type, place, words));
  });
}

function callFor(type: string, place: string, options: string): MountCall {
  const words = options.split(",");
  const flags = words.reduce((sum, word) => sum | (mountFlags.get(word) ?? 0n), 0n);
  const data = words.filter((word) => !mountFlags.has(word)).join(",");
  return [text(type), text(place), text(type), flags, text(data)];
}

function makeAll(calls: readonly MountCall[][]): number {
  const failed = calls.findIndex((attempts) => !attempts.some((call) => libc().mount(...call) === 0));
  return failed === -1 ? calls.length : failed;
}

function text(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}

const here = text(".");
const none = text("");

/**
 * Says whether bough itself runs in a chroot: its root is not that of its mount namespace. A runtime moves the root of a command
 * below bough's root only, so the machine's own root stays above it, and chroot(2) is the way there.
 */
export const chrootState = once(() => ({ isInChroot: isInChroot() }));

function isInChroot(): boolean {
  const open = () => openSync("/", constants.O_RDONLY | constants.O_DIRECTORY);
  const opened = [open()];
  try {
    visitNamespace("self", () => opened.push(open()));
    const [own, ofNamespace = own] = opened.map(identify);
    return own !== ofNamespace;
  } catch {
    // bough may not enter its own namespace, or there is no such library.
    return false;
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}

/** Identifies a directory and the mount by which it is reached. */
function identify(descriptor: number): string {
  const { dev, ino } = fstatSync(descriptor);
  const [mount] = /^mnt_id:.*$/m.exec(readFileSync(`/proc/self/fdinfo/${descriptor}`, "utf8")) ?? [];
  return `${dev} ${ino} ${mount}`;
}
