/** bough itself in a chroot: its root is not that of its mount namespace. */
import type { Clock } from "../../../clock.ts";
import { BoughError } from "../../../errors.ts";
import type { Environment } from "../../../home-directory.ts";
import { createSingleFlight } from "../../../once.ts";
import { runHelper } from "../../../programs/helper.ts";
import { ownProcess } from "../../../programs/own-process.ts";
import { findProgram, helperEnvironment } from "../../system/programs.ts";
import { inChroot } from "./namespace-root.ts";

/** What helpers need. */
interface Surroundings {
  environment: Environment;
  clock: Clock;
}

/** Each process takes some milliseconds. */
const maxSeconds = 10;

const known = createSingleFlight<boolean>({ keeps: true });

/**
 * Returns whether bough runs in a chroot. A runtime moves the root of a command below bough's root only, so the machine's own root
 * stays above it, and chroot(2) is the way there.
 */
export function isInChroot(surroundings: Surroundings): Promise<boolean> {
  return known("", async () => {
    // The kernel makes no user namespace in a chroot (user_namespaces(7)): where one can be made, there is none.
    const trial = [findProgram("unshare", surroundings.environment), "--user", "true"];
    if ((await run(trial, surroundings)) === 0) return false;
    return (await run(ownProcess("find-root"), surroundings)) === inChroot;
  });
}

/** Makes bough's root that of the mount namespace of a process, where the machine's own is above it. */
export async function replaceNamespaceRoot(pid: number, surroundings: Surroundings): Promise<void> {
  if ((await run(ownProcess("replace-root", String(pid)), surroundings)) === 0) return;
  throw new BoughError("the sandbox could not be made the root of its namespace in bough's chroot", {
    hint: "Run bough outside of the chroot, or enter it by pivot_root.",
  });
}

async function run(command: readonly string[], { environment, clock }: Surroundings): Promise<number> {
  const place = { workingDirectory: "/", environment: helperEnvironment(environment) };
  return (await runHelper(command, { ...place, clock, seconds: maxSeconds })).status;
}
