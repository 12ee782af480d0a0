/** Identifies processes beyond their process ID, which is reused, and tells whether they are alive. */
import { readFileSync } from "node:fs";
import { errorCode } from "./system-error.ts";

/** The boot ID and this process's identity, which never change and are needed by every command. */
const known: { boot?: string | undefined; own?: string } = {};

/** Returns this process's identity; see `identify`. */
export function currentProcess(): string {
  known.own ??= identify(process.pid);
  return known.own;
}

/**
 * Returns a process's identity, which no other process has, even after a reboot: boot ID, process ID and start time. On a system
 * without /proc it is only the process ID.
 */
export function identify(pid: number): string {
  const boot = bootId();
  return boot === undefined ? String(pid) : [boot, pid, startTime(pid)].join(".");
}

/**
 * True if the process of an identity is alive. A process in another container, which may share a directory but not the process
 * table, counts as dead.
 */
export function isAlive(identity: string): boolean {
  const [boot, pid, started] = identity.split(".");
  if (pid === undefined) return Number(identity) !== process.pid && canBeSignalled(Number(identity));
  if (identity === known.own) return true;
  return boot === bootId() && started !== undefined && startTime(Number(pid)) === started;
}

/** Returns the kernel's boot ID; `undefined` on a system without /proc. */
export function bootId(): string | undefined {
  try {
    known.boot ??= readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // The system has no boot ID.
  }
  return known.boot;
}

/** Returns a process's start time, in clock ticks since boot (proc(5), `/proc/pid/stat`); `undefined` if there is no process. */
function startTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The second field is the program's name in parentheses, which may contain anything. The 20th is the number of threads, the
    // 22nd the start time.
    const [state, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // The first thread can have ended while another still writes.
    const threads = Number(rest[16]);
    return state === "X" || (state === "Z" && threads <= 1) ? undefined : rest[18];
  } catch {
    return undefined;
  }
}

function canBeSignalled(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === "EPERM";
  }
}
