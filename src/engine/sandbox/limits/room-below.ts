/** Groups of version 2 within the limits of this process's own group. */
import { mkdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { readOptional } from "../../../open-for-reading.ts";
import { errorCode } from "../../../system-error.ts";
import { type Hierarchy, isWritable, linesOf } from "./controllers.ts";

/** The group below a unit's or container's group in which its processes are. No unit of systemd has such a name. */
const groupName = "bough";

/**
 * Moves all processes of this process's group to a group below it, so that what limits the group, such as a systemd service's
 * MemoryMax, limits commands, too: their groups are made beside the process's own (`containerParent`), and only a group without
 * processes can limit groups below it. Does nothing in version 1, where any group can, or where that is not allowed.
 */
export function makeRoomBelow(hierarchies: readonly Hierarchy[]): void {
  const [own] = hierarchies;
  if (own === undefined || hierarchies.some(({ version }) => version === 1)) return;
  const { directory } = own;
  if (basename(directory) === groupName || !canBeEmptied(directory)) return;
  const below = join(directory, groupName);
  try {
    mkdirSync(below, { recursive: true });
    // This process is the last one: if another can't be moved, it stays where groups can be limited beside it.
    moveAll(directory, below, [process.pid]);
    moveAll(directory, below, []);
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    // Groups are made beside the unit's, as before.
  }
}

/** The machine's root group has no type, and may have processes beside groups. */
function canBeEmptied(directory: string): boolean {
  const isDomain = readOptional(join(directory, "cgroup.type")).startsWith("domain");
  return isDomain && isWritable(directory) && isWritable(join(directory, "cgroup.procs"));
}

/** Repeats itself for processes that others start meanwhile. */
function moveAll(from: string, to: string, except: readonly number[]): void {
  for (;;) {
    const members = linesOf(readOptional(join(from, "cgroup.procs"))).map(Number);
    const others = members.filter((pid) => !except.includes(pid));
    if (others.length === 0) return;
    for (const pid of others) move(pid, to);
  }
}

/** The kernel writes 0 for a process of another PID namespace, but takes it for the writer. */
function move(pid: number, to: string): void {
  if (pid === 0) throw Object.assign(new Error("a process is out of reach"), { code: "EPERM" });
  try {
    writeFileSync(join(to, "cgroup.procs"), String(pid));
  } catch (error) {
    // It has ended.
    if (errorCode(error) !== "ESRCH") throw error;
  }
}
