import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { tryPrivateNetwork } from "../../engine/network/private-network.ts";
import { findCrun, wantedRuntime } from "../../engine/sandbox/runtime/choice.ts";
import { recallTrial } from "../../engine/sandbox/runtime/trial.ts";
import { findOptionalProgram, findProgram } from "../../engine/system/programs.ts";
import { BoughError, messageOf } from "../../errors.ts";
import type { Runtime } from "../process/runtime.ts";
import { engineDirectory } from "../service/choice.ts";
import { type CheckResult, failedCheck, programVersion } from "./check-result.ts";

/** The programs that can start a RUN. crun takes a third of runc's time, but does not work everywhere. */
export type RuntimeFacts = {
  hasRunc: boolean;
  /** The value of `BOUGH_RUNTIME`; an error if it is invalid. */
  wanted: "runc" | "crun" | undefined | BoughError;
  /** `untried`: the next command of the engine tries it. */
  crun: "works" | "untried" | { problem: string };
};

/** `unmet`: the status if nothing can start a RUN. */
export function diagnoseRuntime(facts: RuntimeFacts, unmet: "failed" | "warning"): CheckResult {
  const check = "engine's runtime";
  const { wanted, crun, hasRunc } = facts;
  if (wanted instanceof BoughError) return failedCheck(check, wanted, unmet);
  const problem = typeof crun === "object" ? crun.problem : undefined;
  if (wanted === "runc") return { check, status: "ok", detail: "runc, as BOUGH_RUNTIME says" };
  if (problem === undefined) {
    const fallback = hasRunc
      ? "a RUN on a terminal uses runc"
      : "runc is missing, which a RUN on a terminal needs";
    const detail = crun === "works" ? `crun; ${fallback}` : `crun, which the next RUN tries; ${fallback}`;
    return { check, status: "ok", detail };
  }
  if (wanted === "crun") {
    const detail = `BOUGH_RUNTIME is crun, which cannot be used: ${problem}`;
    return { check, status: unmet, detail, fix: "Unset BOUGH_RUNTIME to use runc." };
  }
  return {
    check,
    status: "ok",
    detail: `runc; crun would start a RUN in a third of the time, but cannot be used: ${problem}`,
  };
}

export function examineRuntime(runtime: Runtime, inUserNamespace: boolean): RuntimeFacts {
  const { environment } = runtime;
  return {
    hasRunc: findOptionalProgram("runc", environment) !== undefined,
    wanted: readWanted(runtime),
    crun: examineCrun(runtime, inUserNamespace),
  };
}

function readWanted({ environment }: Runtime): RuntimeFacts["wanted"] {
  try {
    return wantedRuntime(environment);
  } catch (error) {
    if (error instanceof BoughError) return error;
    throw error;
  }
}

function examineCrun(runtime: Runtime, inUserNamespace: boolean): RuntimeFacts["crun"] {
  try {
    return recallCrun(runtime, inUserNamespace);
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

function recallCrun(runtime: Runtime, inUserNamespace: boolean): RuntimeFacts["crun"] {
  const engine = engineDirectory(runtime);
  const place = existsSync(engine) ? realpathSync(engine) : engine;
  const found = findCrun({ containers: join(place, "containers") }, runtime.environment, inUserNamespace);
  if ("problem" in found) return found;
  const result = recallTrial({ runtimeTrial: join(place, "runtime.json") }, found.key, runtime.clock.now());
  if (result === undefined) return "untried";
  return "filter" in result ? "works" : result;
}

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
