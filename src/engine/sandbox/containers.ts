import { existsSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Layout } from "../layout.ts";
import { runHelper } from "../system/helper.ts";
import { helperEnvironment, locate } from "../system/programs.ts";
import { removeControlGroups } from "./control-groups.ts";
import type { SandboxHost } from "./sandbox-request.ts";

/** Whether the first process of a container is there. Its number counts in the process namespace that runc is in. */
export function hasFirstProcess(layout: Layout, id: string): boolean {
  try {
    const state = JSON.parse(readFileSync(join(layout.containers, id, "state.json"), "utf8")) as {
      init_process_pid?: unknown;
    };
    return typeof state.init_process_pid === "number" && state.init_process_pid > 0;
  } catch {
    return false;
  }
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
