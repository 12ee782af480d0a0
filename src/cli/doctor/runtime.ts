import { accessSync, constants, existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { tryPrivateNetwork } from "../../engine/network/private-network.ts";
import {
  type Controllers,
  canMakeGroup,
  containerParent,
  controllerNames,
  hasOwnProcesses,
  ownHierarchies,
  usableControllers,
} from "../../engine/sandbox/limits/controllers.ts";
import { moveProcessesBelow } from "../../engine/sandbox/limits/own-groups.ts";
import { findCrun, wantedRuntime } from "../../engine/sandbox/runtime/choice.ts";
import { readTrial } from "../../engine/sandbox/runtime/trial-record.ts";
import { findOptionalProgram, findProgram } from "../../engine/system/programs.ts";
import { BoughError, messageOf } from "../../errors.ts";
import { errorCode } from "../../system-error.ts";
import type { Runtime } from "../process/runtime.ts";
import { engineDirectory } from "../service/choice.ts";
import { attempt, type CheckResult, failedCheck, programVersion } from "./check-result.ts";

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
  const result = readTrial({ runtimeTrial: join(place, "runtime.json") }, found.key, runtime.clock.now());
  if (result === undefined) return "untried";
  return "filter" in result ? "works" : result;
}

/** Name and version of slirp4netns if it works, else why not; `untried` if it can't be tried. */
export type NetworkFacts =
  | "untried"
  | string
  | { problem: BoughError; device: "usable" | "forbidden" | "missing" };

/** Returns a warning at most: without a private network builds still work. */
export function diagnoseNetwork(facts: NetworkFacts): CheckResult[] {
  const check = "engine's network";
  if (facts === "untried") return [];
  if (typeof facts === "string") {
    return [
      { check, status: "ok", detail: `${facts}: a RUN reaches the outside, but not this machine's loopback` },
    ];
  }
  const { problem, device } = facts;
  const detail = `a RUN has this machine's network, loopback included: ${problem.message}`;
  const fix = {
    usable: problem.hint === undefined ? undefined : String(problem.hint),
    forbidden: `As root: chmod 0666 ${tunDevice} (in a container: --device ${tunDevice})`,
    missing: `As root: modprobe tun (in a container: --device ${tunDevice})`,
  }[device];
  return [{ check, status: "warning", detail, ...(fix === undefined ? {} : { fix }) }];
}

/** The device with which slirp4netns makes a network. */
const tunDevice = "/dev/net/tun";

export async function examineNetwork(runtime: Runtime, isRoot: boolean): Promise<NetworkFacts> {
  const { environment, clock } = runtime;
  const result = await attempt(runtime, async () => {
    const program = findProgram("slirp4netns", environment);
    await tryPrivateNetwork(environment, clock, isRoot);
    return await programVersion("slirp4netns", program, runtime);
  });
  return typeof result === "string" ? result : { problem: result, device: examineTunDevice() };
}

function examineTunDevice(): "usable" | "forbidden" | "missing" {
  try {
    accessSync(tunDevice, constants.R_OK | constants.W_OK);
    return "usable";
  } catch (error) {
    return errorCode(error) === "EACCES" ? "forbidden" : "missing";
  }
}

export interface LimitFacts {
  controllers: Controllers;
  isRoot: boolean;
  isInContainer?: boolean;
  /** True if the controllers that set limits are in control groups of version 2. */
  hasVersionTwo: boolean;
  /** The group of version 2 in which groups can be made, but not limited, since it has processes, as in a container. */
  crowdedGroup?: string | undefined;
}

const nouns = { memory: "memory", pids: "processes", cpu: "processors" } as const;

/**
 * Reports missing control groups. For an ordinary user, bough itself watches what a command uses. For root, no RUN starts without
 * control groups, since one keeps devices from it: its status is `unmet`.
 */
export function diagnoseLimits(facts: LimitFacts, unmet: "failed" | "warning"): CheckResult {
  const check = "engine's limits";
  const missing = controllerNames.filter((name) => facts.controllers[name] === undefined);
  if (facts.isRoot && missing.length === controllerNames.length && facts.crowdedGroup === undefined) {
    const detail =
      "control groups cannot be created, but as root each RUN needs one that restricts its devices";
    return { check, status: unmet, detail, fix: fixFor(facts) };
  }
  const name = (names: readonly (typeof controllerNames)[number][]) =>
    names.map((each) => nouns[each]).join(", ");
  if (missing.length === 0)
    return { check, status: "ok", detail: `control groups: ${name(controllerNames)}` };
  const watched = missing.filter((each) => each !== "cpu");
  const details = [
    `no control group for ${name(missing)}`,
    ...(watched.length === 0
      ? []
      : [
          `${name(watched)} ${watched.length === 1 ? "is" : "are"} checked by bough itself, which may notice an excess a moment late`,
        ]),
    ...(missing.includes("cpu") ? ["--cpus is not supported"] : []),
  ];
  return { check, status: "warning", detail: details.join("; "), fix: fixFor(facts) };
}

function fixFor({
  controllers,
  isRoot,
  isInContainer,
  hasVersionTwo,
  crowdedGroup: group,
}: LimitFacts): string {
  if (isRoot && group !== undefined)
    return `Move this container's processes into a group below: mkdir ${group}/init && xargs -rn1 < ${group}/cgroup.procs > ${group}/init/cgroup.procs`;
  if (isRoot) return "Mount /sys/fs/cgroup writable (inside of a container: --privileged).";
  if (isInContainer)
    return "The container's own limits hold for all RUNs together: docker run --memory, --pids-limit, --cpus. Limits of each RUN need --privileged.";
  // systemd gives a user's own groups some controllers, depending on its version.
  if (hasVersionTwo && Object.keys(controllers).length > 0)
    return "With systemd, as root: mkdir -p /etc/systemd/system/user@.service.d && printf '[Service]\\nDelegate=cpu memory pids\\n' > /etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload. Then log in again.";
  if (hasVersionTwo)
    return "With systemd, if you have logged in (ssh, console or desktop; not su): systemd-run --user --scope -p Delegate=yes bough ... Or run bough as root.";
  return "Run bough as root, or start Linux with systemd.unified_cgroup_hierarchy=1.";
}

export function examineLimits(isRoot: boolean, isInContainer: boolean): LimitFacts {
  // As the engine does.
  moveProcessesBelow(ownHierarchies());
  const hierarchies = ownHierarchies();
  const hasVersionTwo = !hierarchies.some(({ controllers }) => controllers.includes("memory"));
  const usable = hierarchies.filter((each) => each.version === 2 && hasVersionTwo && canMakeGroup(each));
  const crowdedGroup = usable.map(containerParent).find(hasOwnProcesses);
  return { controllers: usableControllers(hierarchies), isRoot, isInContainer, hasVersionTwo, crowdedGroup };
}
