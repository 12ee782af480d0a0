import { lstatSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../clock.ts";
import { bootId } from "../../lock-file.ts";
import { sendSignal } from "../../programs/helper.ts";

/**
 * Records the process that works for an operation, so that it can be killed from another process. The helper leads a session. The
 * start time and the PID namespace tell its PID from the same number of another process.
 */
export function recordHelper(directory: string, pid: number): void {
  const identity = [bootId(), pid, startTime(pid), processNamespace("self")];
  writeFileSync(join(directory, "helper"), identity.join("."));
}

/** Kills the helper of an operation that another process runs. That process does the rest. */
export function stopHelper(directory: string): void {
  const helper = recordedHelper(directory);
  if (helper !== undefined && isRunning(helper)) endProcesses(pidOf(helper));
}

/**
 * Kills a helper that leads a session, with everything that it started. If it has made a PID namespace, kills the namespace's
 * first process instead. The kernel then kills all others in there, and the helper ends after them.
 */
export function endProcesses(helper: number): void {
  sendSignal(findFirstInNamespace(helper) ?? -helper, "SIGKILL");
}

/** Returns the first process of the PID namespace that a helper has made; `undefined` if it has made none, or is gone. */
export function findFirstInNamespace(helper: number): number | undefined {
  const own = processNamespace(helper);
  return childrenOf(helper).find((child) => ![own, undefined].includes(processNamespace(child)));
}

/**
 * Returns the PID of a helper's descendant, given its PID in the namespace that the helper has made or entered. `undefined` if it
 * is gone.
 */
export function findDescendant(helper: number, numberInNamespace: number | undefined): number | undefined {
  if (numberInNamespace === undefined) return undefined;
  const waiting = childrenOf(helper);
  for (let pid = waiting.pop(); pid !== undefined; pid = waiting.pop()) {
    if (numbersOf(pid)[1] === numberInNamespace) return pid;
    waiting.push(...childrenOf(pid));
  }
  return undefined;
}

/** The time to wait for a killed helper: it is gone at once, unless it waits for the disk. */
const maxEndMilliseconds = 5_000;

/**
 * Kills the helper recorded by `recordHelper`, and waits until it is gone: until then it may write to the directory. In another PID
 * namespace, the kernel kills it with the process that has started it.
 */
export async function killHelper(directory: string, clock: Clock): Promise<void> {
  const helper = recordedHelper(directory);
  if (helper === undefined || !isRunning(helper)) return;
  endProcesses(pidOf(helper));
  for (let waited = 0; waited < maxEndMilliseconds && isRunning(helper); waited += 5) await clock.sleep(5);
}

/** Returns the recorded helper; `undefined` also if the file was replaced: reading a pipe would block, and killing process 1 would kill everything. */
function recordedHelper(directory: string): string | undefined {
  try {
    const path = join(directory, "helper");
    if (!lstatSync(path).isFile()) return undefined;
    const helper = readFileSync(path, "utf8");
    return pidOf(helper) > 1 && pidOf(helper) !== process.pid ? helper : undefined;
  } catch {
    return undefined;
  }
}

function pidOf(helper: string): number {
  return Number(helper.split(".")[1]);
}

/** Returns true if the recorded helper runs, as far as this process can see it. */
function isRunning(helper: string): boolean {
  const [boot, pid, started, namespace] = helper.split(".");
  return (
    boot === bootId() &&
    namespace === processNamespace("self") &&
    started !== undefined &&
    started === startTime(Number(pid))
  );
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

function processNamespace(pid: number | "self"): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined;
  }
}

/** Returns the children of all its threads: runc starts processes from any of them. */
function childrenOf(pid: number): number[] {
  return threadsOf(pid).flatMap((thread) => {
    try {
      return splitNumbers(readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8"));
    } catch {
      // It ended meanwhile, or the kernel has no CONFIG_PROC_CHILDREN.
      return [];
    }
  });
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

/** Returns a process's PIDs: in this process's namespace, in the one below, and so on. */
function numbersOf(pid: number): number[] {
  try {
    return splitNumbers(/^NSpid:(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "");
  } catch {
    return [];
  }
}

function splitNumbers(text: string): number[] {
  return text
    .split(/\s+/)
    .filter((word) => word !== "")
    .map(Number);
}
