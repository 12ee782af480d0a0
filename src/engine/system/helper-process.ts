import { lstatSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../clock.ts";
import { identify, isAlive } from "../../process-identity.ts";

/**
 * Notes which process works for an operation at the moment, so that it can be ended should this process be killed. It leads a
 * session of its own.
 */
export function recordHelper(directory: string, pid: number): void {
  writeFileSync(join(directory, "helper"), identify(pid));
}

/** Ends the helper of an operation that another process runs; that one sees to the rest. */
export function stopHelper(directory: string): void {
  const helper = notedHelper(directory);
  if (helper !== undefined && isAlive(helper)) endProcesses(pidOf(helper));
}

/**
 * Ends a helper that leads a session, with all that it started. Of one that has made a process namespace the namespace's first
 * process is killed, and with it the kernel kills all the others: the helper ends when they are gone.
 */
export function endProcesses(helper: number): void {
  try {
    process.kill(findFirstInNamespace(helper) ?? -helper, "SIGKILL");
  } catch {
    // It ended meanwhile.
  }
}

/** The first process of the process namespace that a helper has made; `undefined` where it has made none, or is gone. */
export function findFirstInNamespace(helper: number): number | undefined {
  const own = processNamespace(helper);
  return childrenOf(helper).find((child) => ![own, undefined].includes(processNamespace(child)));
}

/**
 * A helper's descendant as this process numbers it, by its number in the process namespace that the helper has made or entered.
 * `undefined` where it is gone.
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

/** How long to wait for one that was killed, in milliseconds: it is gone at once, unless the disk holds it. */
const patience = 5_000;

/** Ends what `recordHelper` noted, and waits until it is gone: until then it may write to the directory. */
export async function killHelper(directory: string, clock: Clock): Promise<void> {
  const helper = notedHelper(directory);
  if (helper === undefined || !isAlive(helper)) return;
  endProcesses(pidOf(helper));
  for (let waited = 0; waited < patience && isAlive(helper); waited += 5) await clock.sleep(5);
}

/** `undefined` also where something else has been put in its place: a pipe would be waited for, and to end process 1 is to end all. */
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

/** The children of all its threads: runc starts processes from any of them. */
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

/** A process's number in this process's namespace, in the one below, and so on. */
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
