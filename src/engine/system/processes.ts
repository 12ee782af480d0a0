import { readFileSync } from "node:fs";

/** Names this process; see `identify`. */
export function currentProcess(): string {
  return identify(process.pid);
}

/**
 * Names a process in a way that no other process, now or after a restart of the machine, shares: boot id, process id and
 * start time.
 */
export function identify(pid: number): string {
  return [bootId(), pid, startTime(pid)].join(".");
}

/** Whether the process that `identify` named is still there. */
export function isAlive(identity: string): boolean {
  const [boot, pid, started] = identity.split(".");
  return boot === bootId() && started !== undefined && startTime(Number(pid)) === started;
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

/** In clock ticks since the machine started; `undefined` where there is no such process. */
function startTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the program's name in parentheses and may hold anything; the 20th is the number of threads, the
    // 22nd the start time.
    const [state, ...rest] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // Its first thread can be gone while another one is still in the middle of a write.
    const threads = Number(rest[16]);
    return state === "Z" && threads <= 1 ? undefined : rest[18];
  } catch {
    return undefined;
  }
}
