/** Which process something belongs to, and whether that process is still there: numbers of processes come round again. */
import { readFileSync } from "node:fs";
import { errorCode } from "./system-error.ts";

/** The machine's run and this process stay what they are; both are asked for with every command. */
const known: { boot?: string | undefined; own?: string } = {};

/** Names this process; see `identify`. */
export function currentProcess(): string {
  known.own ??= identify(process.pid);
  return known.own;
}

/**
 * Names a process in a way that no other process, now or after a restart of the machine, shares: boot id, process id and
 * start time. On a system without /proc the process id has to do.
 */
export function identify(pid: number): string {
  const boot = bootId();
  return boot === undefined ? String(pid) : [boot, pid, startTime(pid)].join(".");
}

/**
 * Returns whether the process that `identify` named is still there. A process in another container, which may share a directory but
 * not the process table, counts as gone.
 */
export function isAlive(identity: string): boolean {
  const [boot, pid, started] = identity.split(".");
  if (pid === undefined) return Number(identity) !== process.pid && canBeSignalled(Number(identity));
  if (identity === known.own) return true;
  return boot === bootId() && started !== undefined && startTime(Number(pid)) === started;
}

/** Names the machine's run; `undefined` on a system without /proc. */
export function bootId(): string | undefined {
  try {
    known.boot ??= readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // There is none.
  }
  return known.boot;
}

/** Returns when the process started, in clock ticks since the machine did (proc(5), `/proc/pid/stat`); `undefined` where there is no such process. */
function startTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The second field is the program's name in parentheses and may hold anything; the 20th is the number of threads, the
    // 22nd the start time.
    const [state, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // Its first thread can be gone while another one is still in the middle of a write.
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
