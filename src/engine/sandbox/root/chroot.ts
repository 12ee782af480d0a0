/** Support for a bough that runs in a chroot: its root is not that of its mount namespace. */
import type { Clock } from "../../../clock.ts";
import { BoughError } from "../../../errors.ts";
import type { Environment } from "../../../home-directory.ts";
import { createSingleFlight } from "../../../once.ts";
import { runHelper } from "../../../programs/helper.ts";
import { ownProcess } from "../../../programs/own-process.ts";
import { findProgram, helperEnvironment } from "../../system/programs.ts";
import { inChroot } from "./namespace-root.ts";

/** The environment and the clock of helpers. */
interface HelperHost {
  environment: Environment;
  clock: Clock;
}

/** Normally each process takes some milliseconds. */
const maxSeconds = 10;

const known = createSingleFlight<boolean>({ keeps: true });

/**
 * Returns true if bough runs in a chroot. A runtime moves the root of a command below bough's root only, so the machine's own root
 * stays above it, and chroot(2) is the way there.
 */
export function isInChroot(host: HelperHost): Promise<boolean> {
  return known("", async () => {
    // The kernel makes no user namespace in a chroot (user_namespaces(7)): if one can be made, bough is not in a chroot.
    const trial = [findProgram("unshare", host.environment), "--user", "true"];
    if ((await run(trial, host)) === 0) return false;
    return (await run(ownProcess("find-root"), host)) === inChroot;
  });
}

/** Makes bough's root the root of a process's mount namespace, in place of the machine's own. */
export async function replaceNamespaceRoot(pid: number, host: HelperHost): Promise<void> {
  if ((await run(ownProcess("replace-root", String(pid)), host)) === 0) return;
  throw new BoughError("the sandbox could not be made the root of its namespace in bough's chroot", {
    hint: "Run bough outside of the chroot, or enter it by pivot_root.",
  });
}

async function run(command: readonly string[], { environment, clock }: HelperHost): Promise<number> {
  const place = { workingDirectory: "/", environment: helperEnvironment(environment) };
  return (await runHelper(command, { ...place, clock, seconds: maxSeconds })).status;
}
