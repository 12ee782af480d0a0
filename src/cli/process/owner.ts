import { readFileSync } from "node:fs";
import type { Owner } from "../../builder/job.ts";

/**
 * This process, by its number and the time it was started at: numbers come round again. Of a process in another
 * container, which shares the state directory but not the process table, it is not known that it lives.
 */
export function ownProcess(): Owner {
  const start = startOf(process.pid);
  return {
    id: start === undefined ? String(process.pid) : `${process.pid}@${start}`,
    isAlive(id) {
      const [pid = "", start] = id.split("@", 2);
      if (start !== undefined) return startOf(Number(pid)) === start;
      return Number(pid) !== process.pid && canBeSignalled(Number(pid));
    },
  };
}

/** In ticks since the machine was started (proc(5), `/proc/pid/stat`); `undefined` for what has ended. */
function startOf(pid: number): string | undefined {
  try {
    // The program's name comes before, in brackets, and may hold anything.
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

function canBeSignalled(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
