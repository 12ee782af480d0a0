import { lstatSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../clock.ts";
import { identify, isAlive } from "./processes.ts";

/**
 * Notes which process works for an operation at the moment, so that it can be ended should this process be killed. It leads a
 * session of its own.
 */
export function noteHelper(directory: string, pid: number): void {
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
  const own = processNamespace(helper);
  const first = childrenOf(helper).find((child) => ![own, undefined].includes(processNamespace(child)));
  try {
    process.kill(first ?? -helper, "SIGKILL");
  } catch {
    // It ended meanwhile.
  }
}

/** How long to wait for one that was killed, in milliseconds: it is gone at once, unless the disk holds it. */
const patience = 5_000;

/** Ends what `noteHelper` noted, and waits until it is gone: until then it may write to the directory. */
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

function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return text
      .split(" ")
      .filter((word) => word !== "")
      .map(Number);
  } catch {
    // A kernel without CONFIG_PROC_CHILDREN.
    return [];
  }
}
