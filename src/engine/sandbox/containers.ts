import { existsSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Layout } from "../layout.ts";
import { runHelper } from "../system/helper.ts";
import { helperEnvironment, locate } from "../system/programs.ts";
import { removeControlGroups } from "./control-groups.ts";
import type { SandboxHost } from "./sandbox-request.ts";

/** The first process of a container, as this process sees it; `undefined` before it exists and after its end. */
export function containerPid(layout: Layout, id: string): number | undefined {
  try {
    const state = JSON.parse(readFileSync(join(layout.containers, id, "state.json"), "utf8")) as {
      init_process_pid?: unknown;
    };
    return typeof state.init_process_pid === "number" && state.init_process_pid > 0
      ? state.init_process_pid
      : undefined;
  } catch {
    return undefined;
  }
}

/** Kills a container's first process; the kernel kills all others of its process namespace with it. */
export function killContainer(layout: Layout, id: string): boolean {
  const pid = containerPid(layout, id);
  if (pid === undefined) return false;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended meanwhile.
  }
  return true;
}

/** Killing and unmounting takes runc some milliseconds. */
const maxRemovalSeconds = 60;

/** Removes what is left of a container whose runc did not get to clean up: processes, control groups, state. */
export async function removeContainer(
  { layout, environment, clock }: Pick<SandboxHost, "layout" | "environment" | "clock">,
  id: string,
): Promise<void> {
  const state = join(layout.containers, id);
  if (!existsSync(state)) return;
  await runHelper([locate("runc", environment), "--root", layout.containers, "delete", "--force", id], {
    environment: helperEnvironment(environment),
    clock,
    seconds: maxRemovalSeconds,
  });
  // Where runc can't read the state that it was killed while writing. The directory goes last: it is what says that there is
  // something to remove, should this process be killed here.
  await removeControlGroups(id, clock);
  await rm(state, { recursive: true, force: true });
}
