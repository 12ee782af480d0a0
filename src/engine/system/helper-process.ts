import { lstatSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../clock.ts";
import { identify, isAlive } from "../../process-identity.ts";
import { sendSignal } from "./send-signal.ts";

/** Records the process that works for an operation, so that it can be killed if this process is. The helper leads a session. */
export function recordHelper(directory: string, pid: number): void {
  writeFileSync(join(directory, "helper"), identify(pid));
}

/** Kills the helper of an operation that another process runs. That process does the rest. */
export function stopHelper(directory: string): void {
  const helper = notedHelper(directory);
  if (helper !== undefined && isAlive(helper)) endProcesses(pidOf(helper));
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

/** Milliseconds to wait for a killed helper: it is gone at once, unless it waits for the disk. */
const maxEndMilliseconds = 5_000;

/** Kills the helper recorded by `recordHelper`, and waits until it is gone: until then it may write to the directory. */
export async function killHelper(directory: string, clock: Clock): Promise<void> {
  const helper = notedHelper(directory);
  if (helper === undefined || !isAlive(helper)) return;
  endProcesses(pidOf(helper));
  for (let waited = 0; waited < maxEndMilliseconds && isAlive(helper); waited += 5) await clock.sleep(5);
}

/** `undefined` also if the file was replaced: reading a pipe would block, and killing process 1 would kill everything. */
function notedHelper(directory: string): string | undefined {
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

function processNamespace(pid: number): string | undefined {
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
