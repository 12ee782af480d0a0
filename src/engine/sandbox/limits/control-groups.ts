import { readFileSync } from "node:fs";
import { rmdir } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Clock } from "../../../clock.ts";
import { sendSignal } from "../../../programs/send-signal.ts";
import { errorCode } from "../../../system-error.ts";
import { containerParent, linesOf, ownHierarchies } from "./hierarchies.ts";

/** Milliseconds to wait for killed processes: they are gone within a few, unless they wait for the disk. */
const defaultWaitMilliseconds = 5_000;

/**
 * Removes the control groups (version 1, 2 or both) of a container: those `known` from its state, else those in the places where
 * runc makes them, since a runc that was killed while starting has recorded nothing. Kills the processes in them. Returns whether
 * all groups are gone: a process that waits for the disk keeps its groups.
 */
export async function removeControlGroups(
  id: string,
  known: readonly string[],
  clock: Clock,
  maxWaitMilliseconds = defaultWaitMilliseconds,
): Promise<boolean> {
  const usual = () =>
    ownHierarchies()
      // A process that has made no room yet is in the group below which they are.
      .flatMap((hierarchy) => [containerParent(hierarchy), hierarchy.directory])
      .map((parent) => join(parent, id));
  let left = (known.length > 0 ? known : usual()).filter((directory) => basename(directory) === id);
  for (let waited = 0; ; waited += 5) {
    // Not in this thread: the kernel takes its time for each.
    const removed = await Promise.all(left.map(removeControlGroup));
    left = left.filter((_, index) => !removed[index]);
    if (left.length === 0 || waited >= maxWaitMilliseconds) return left.length === 0;
    await clock.sleep(5);
  }
}

/** Returns false if it should be tried again. */
async function removeControlGroup(directory: string): Promise<boolean> {
  try {
    await rmdir(directory);
  } catch (error) {
    // Any other error: it does not exist, or this process may not remove it.
    if (errorCode(error) !== "EBUSY") return true;
    killMembers(directory);
    return false;
  }
  return true;
}

function killMembers(directory: string): void {
  for (const line of membersOf(directory)) {
    const pid = Number(line);
    // The kernel writes 0 for a process without a PID in this process's PID namespace.
    if (pid > 0) sendSignal(pid, "SIGKILL");
  }
}

function membersOf(directory: string): string[] {
  try {
    return linesOf(readFileSync(join(directory, "cgroup.procs"), "utf8"));
  } catch {
    // The group has been removed meanwhile.
    return [];
  }
}
