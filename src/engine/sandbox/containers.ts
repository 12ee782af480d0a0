import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { rm, rmdir } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Clock } from "../../clock.ts";
import { sendSignal } from "../../programs/helper.ts";
import { errorCode } from "../../system-error.ts";
import type { Layout } from "../layout.ts";
import { containerParent, linesOf, ownHierarchies } from "./limits/controllers.ts";

/** Returns the PID of a container's first process, in runc's PID namespace; `undefined` before it exists. */
export function firstProcess(layout: Layout, id: string): number | undefined {
  const pid = readState(layout, id).init_process_pid;
  return typeof pid === "number" && pid > 0 ? pid : undefined;
}

/** Reads a runtime's `--pid-file`: a PID in the runtime's PID namespace. `undefined` before the runtime has written it. */
export function readPid(path: string): number | undefined {
  try {
    const pid = Number(readFileSync(path, "utf8"));
    return pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the directories of a container's control groups by controller, version 2's by "". Empty before it exists. */
export function containerGroups(layout: Layout, id: string): Readonly<Record<string, string>> {
  const groups = readState(layout, id).cgroup_paths ?? {};
  return Object.fromEntries(
    Object.entries(groups).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

/**
 * Records the control groups that a container will have, for a runtime that records nothing on disk. The process that removes
 * them may be in other groups itself, and would look for them elsewhere. The format is that of runc's state.
 */
export function recordContainer(layout: Layout, id: string, groups: Readonly<Record<string, string>>): void {
  mkdirSync(join(layout.containers, id));
  writeFileSync(statePath(layout, id), JSON.stringify({ cgroup_paths: groups } satisfies ContainerState));
}

/**
 * Removes what is left of a container whose runtime has ended: its processes, control groups and state. The runtime itself is
 * started so that it leaves them. The state stays as long as a group does.
 *
 * @param maxWaitMilliseconds how long to wait for killed processes
 */
export async function removeContainer(
  { layout, clock }: { layout: Layout; clock: Clock },
  id: string,
  maxWaitMilliseconds?: number,
): Promise<void> {
  const state = join(layout.containers, id);
  if (!existsSync(state)) return;
  // The directory is removed last: if this process is killed here, it is the record that something is left to remove.
  if (
    !(await removeControlGroups(id, Object.values(containerGroups(layout, id)), clock, maxWaitMilliseconds))
  )
    return;
  await rm(state, { recursive: true, force: true });
}

/** The fields of runc's state that bough reads. */
interface ContainerState {
  init_process_pid?: unknown;
  cgroup_paths?: Record<string, unknown> | null;
}

function readState(layout: Layout, id: string): ContainerState {
  try {
    return JSON.parse(readFileSync(statePath(layout, id), "utf8")) as ContainerState;
  } catch {
    return {};
  }
}

function statePath(layout: Layout, id: string): string {
  return join(layout.containers, id, "state.json");
}

/** The time to wait for killed processes: they are gone within a few milliseconds, unless they wait for the disk. */
const defaultWaitMilliseconds = 5_000;

/**
 * Removes the control groups (version 1, 2 or both) of a container: those `known` from its state, else those in the places where
 * runc makes them, since a runc that was killed while starting has recorded nothing. Kills the processes in them. Returns whether
 * all groups are gone: a process that waits for the disk keeps its groups.
 */
async function removeControlGroups(
  id: string,
  known: readonly string[],
  clock: Clock,
  maxWaitMilliseconds = defaultWaitMilliseconds,
): Promise<boolean> {
  const usual = () =>
    ownHierarchies()
      // Before `moveProcessesBelow` has moved this process, the groups are below its own group.
      .flatMap((hierarchy) => [containerParent(hierarchy), hierarchy.directory])
      .map((parent) => join(parent, id));
  let left = (known.length > 0 ? known : usual()).filter((directory) => basename(directory) === id);
  for (let waited = 0; ; waited += 5) {
    // They are removed in other threads, as the kernel takes some time for each.
    const removed = await Promise.all(left.map(removeControlGroup));
    left = left.filter((_, index) => !removed[index]);
    if (left.length === 0 || waited >= maxWaitMilliseconds) return left.length === 0;
    await clock.sleep(5);
  }
}

/** Removes a control group. Returns false if that should be tried again. */
async function removeControlGroup(directory: string): Promise<boolean> {
  try {
    await rmdir(directory);
  } catch (error) {
    // With any other error it does not exist, or this process may not remove it.
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
