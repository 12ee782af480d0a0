import { tryPrivateNetwork } from "../../engine/network/private-network.ts";
import { findProgram } from "../../engine/system/programs.ts";
import { BoughError } from "../../errors.ts";
import type { Runtime } from "../process/runtime.ts";
import type { CheckResult } from "./check-result.ts";
import { programVersion } from "./program-version.ts";

/** Name and version of slirp4netns if it works, else the error; `untried` if it can't be tried. */
export type NetworkFacts = "untried" | string | BoughError;

/** Returns a warning at most: without a private network builds still work. */
export function diagnoseNetwork(facts: NetworkFacts): CheckResult[] {
  const check = "engine's network";
  if (facts === "untried") return [];
  if (!(facts instanceof BoughError)) {
    return [
      { check, status: "ok", detail: `${facts}: a RUN reaches the outside, but not this machine's loopback` },
    ];
  }
  const detail = `a RUN has this machine's network, loopback included: ${facts.message}`;
  const fix = fixOf(facts);
  return [{ check, status: "warning", detail, ...(fix === undefined ? {} : { fix }) }];
}

export async function examineNetwork(runtime: Runtime, isRoot: boolean): Promise<NetworkFacts> {
  const { environment, clock } = runtime;
  try {
    const program = findProgram("slirp4netns", environment);
    await tryPrivateNetwork(environment, clock, isRoot);
    return await programVersion("slirp4netns", program, runtime);
  } catch (error) {
    runtime.signal.throwIfAborted();
    if (error instanceof BoughError) return error;
    throw error;
  }
}

function fixOf({ message, hint }: BoughError): string | undefined {
  if (!message.includes("/dev/net/tun")) return hint;
  return message.includes("denied")
    ? "As root: chmod 0666 /dev/net/tun (in a container: --device /dev/net/tun)"
    : "As root: modprobe tun (in a container: --device /dev/net/tun)";
}
