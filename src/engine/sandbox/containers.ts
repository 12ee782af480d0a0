import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../clock.ts";
import type { Layout } from "../layout.ts";
import { removeControlGroups } from "./limits/control-groups.ts";

/** The first process of a container, as the process namespace that runc is in counts it; `undefined` before it is there. */
export function firstProcess(layout: Layout, id: string): number | undefined {
  const pid = readState(layout, id).init_process_pid;
  return typeof pid === "number" && pid > 0 ? pid : undefined;
}

/** What a runtime has written to a `--pid-file`: a number of the process namespace that it is in. `undefined` before it has. */
export function readPid(path: string): number | undefined {
  try {
    const pid = Number(readFileSync(path, "utf8"));
    return pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** The directories of a container's control groups by controller, version 2's by "". Empty before it exists. */
export function containerGroups(layout: Layout, id: string): Readonly<Record<string, string>> {
  const groups = readState(layout, id).cgroup_paths ?? {};
  return Object.fromEntries(
    Object.entries(groups).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

/**
 * Notes that there will be control groups of this container to remove, where its runtime notes nothing on the disk: whoever removes them
 * may be in other groups, and so look for them elsewhere. In runc's words.
 */
export function noteContainer(layout: Layout, id: string, groups: Readonly<Record<string, string>>): void {
  mkdirSync(join(layout.containers, id));
  writeFileSync(statePath(layout, id), JSON.stringify({ cgroup_paths: groups } satisfies ContainerState));
}

/**
 * Removes what is left of a container whose runtime has ended, and with it all processes in there: control groups and state, which
 * stays for as long as a group does. The runtime is told to leave that to this. `patience`: how many milliseconds to wait for processes
 * that were killed.
 */
export async function removeContainer(
  { layout, clock }: { layout: Layout; clock: Clock },
  id: string,
  patience?: number,
): Promise<void> {
  const state = join(layout.containers, id);
  if (!existsSync(state)) return;
  // The directory goes last: it is what says that there is something to remove, should this process be killed here.
  if (!(await removeControlGroups(id, Object.values(containerGroups(layout, id)), clock, patience))) return;
  await rm(state, { recursive: true, force: true });
}

/** What of runc's own state is of use here. */
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
