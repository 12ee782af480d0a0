import { readFileSync } from "node:fs";
import { rmdir } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Clock } from "../../../clock.ts";
import { errorCode } from "../../../system-error.ts";
import { containerParent, linesOf, ownHierarchies } from "./hierarchies.ts";

/** How long to wait for those who were killed, in milliseconds: they are gone within a few, unless the disk holds them. */
const usualPatience = 5_000;

/**
 * Removes the control groups (version 1, 2 or both at once) that runc made for a container: `known` by its state, else
 * those in the places where it makes them, since a runc that was killed in the middle of a start has not said where. Whoever
 * is still in them is killed. Returns whether all are gone: one whom the disk holds stays in them.
 */
export async function removeControlGroups(
  id: string,
  known: readonly string[],
  clock: Clock,
  patience = usualPatience,
): Promise<boolean> {
  const usual = () => ownHierarchies().map((hierarchy) => join(containerParent(hierarchy), id));
  let left = (known.length > 0 ? known : usual()).filter((directory) => basename(directory) === id);
  for (let waited = 0; ; waited += 5) {
    // Not by this thread: the kernel takes its time for each.
    const removed = await Promise.all(left.map(removeControlGroup));
    left = left.filter((_, index) => !removed[index]);
    if (left.length === 0 || waited >= patience) return left.length === 0;
    await clock.sleep(5);
  }
}

/** Returns false where it is worth another try. */
async function removeControlGroup(directory: string): Promise<boolean> {
  try {
    await rmdir(directory);
  } catch (error) {
    // Any other error: none there, or not this process's to remove.
    if (errorCode(error) !== "EBUSY") return true;
    killMembers(directory);
    return false;
  }
  return true;
}

function killMembers(directory: string): void {
  try {
    for (const line of linesOf(readFileSync(join(directory, "cgroup.procs"), "utf8"))) {
      const pid = Number(line);
      // The kernel writes 0 for a process that this one's namespace has no number for.
      if (pid > 0) process.kill(pid, "SIGKILL");
    }
  } catch {
    // They ended meanwhile.
  }
}
