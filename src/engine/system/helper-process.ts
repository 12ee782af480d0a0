import { readFileSync, writeFileSync } from "node:fs";
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

/** How long to wait for one that was killed, in milliseconds: it is gone at once, unless the disk holds it. */
const patience = 5_000;

/** Ends what `noteHelper` noted, and waits until it is gone: until then it may write to the directory. */
export async function killHelper(directory: string, clock: Clock): Promise<void> {
  let helper: string;
  try {
    helper = readFileSync(join(directory, "helper"), "utf8");
  } catch {
    return;
  }
  if (!isAlive(helper)) return;
  const [, pid] = helper.split(".");
  try {
    process.kill(-Number(pid), "SIGKILL");
  } catch {
    // It ended meanwhile.
  }
  for (let waited = 0; waited < patience && isAlive(helper); waited += 5) await clock.sleep(5);
}
