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

/** The programs that can start a RUN. crun needs a third of runc's time, but does not work everywhere. */
export type RuntimeProbe = {
  hasRunc: boolean;
  /** The value of `BOUGH_RUNTIME`; an error if it is invalid. */
  wanted: "runc" | "crun" | undefined | BoughError;
  /** `untried`: the next command of the engine tries it. */
  crun: "works" | "untried" | { problem: string };
};

/** Reports which runtime is used. `severity`: the status if no runtime can be used. */
export function diagnoseRuntime(probe: RuntimeProbe, severity: "failed" | "warning"): CheckResult {
  const check = "engine's runtime";
  const { wanted, crun, hasRunc } = probe;
  if (wanted instanceof BoughError) return failedCheck(check, wanted, severity);
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
    return { check, status: severity, detail, fix: "Unset BOUGH_RUNTIME to use runc." };
  }
  return {
    check,
    status: "ok",
    detail: `runc; crun would start a RUN in a third of the time, but cannot be used: ${problem}`,
  };
}

export function probeRuntime(runtime: Runtime, inUserNamespace: boolean): RuntimeProbe {
  const { environment } = runtime;
  return {
    hasRunc: findOptionalProgram("runc", environment) !== undefined,
    wanted: readWanted(runtime),
    crun: probeCrun(runtime, inUserNamespace),
  };
}

function readWanted({ environment }: Runtime): RuntimeProbe["wanted"] {
  try {
    return wantedRuntime(environment);
  } catch (error) {
    if (error instanceof BoughError) return error;
    throw error;
  }
}

function probeCrun(runtime: Runtime, inUserNamespace: boolean): RuntimeProbe["crun"] {
  try {
    return readCrunTrial(runtime, inUserNamespace);
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

function readCrunTrial(runtime: Runtime, inUserNamespace: boolean): RuntimeProbe["crun"] {
  const engine = engineDirectory(runtime);
  const place = existsSync(engine) ? realpathSync(engine) : engine;
  const found = findCrun({ containers: join(place, "containers") }, runtime.environment, inUserNamespace);
  if ("problem" in found) return found;
  const result = readTrial({ runtimeTrial: join(place, "runtime.json") }, found.key, runtime.clock.now());
  if (result === undefined) return "untried";
  return "filter" in result ? "works" : result;
}

/** The name and version of slirp4netns if it works, else the reason; `untried` if it can't be tried. */
export type NetworkProbe =
  | "untried"
  | string
  | { problem: BoughError; device: "usable" | "forbidden" | "missing" };

/** Reports the network of RUNs. The status is never `failed`, since builds work without a private network. */
export function diagnoseNetwork(probe: NetworkProbe): CheckResult[] {
  const check = "engine's network";
  if (probe === "untried") return [];
  if (typeof probe === "string") {
    return [
      {
        check,
        status: "ok",
        detail: `${probe}: a RUN reaches the outside, but not this machine's loopback`,
      },
    ];
  }
  const { problem, device } = probe;
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

export async function probeNetwork(runtime: Runtime, isRoot: boolean): Promise<NetworkProbe> {
  const { environment, clock } = runtime;
  const result = await attempt(runtime, async () => {
    const program = findProgram("slirp4netns", environment);
    await tryPrivateNetwork(environment, clock, isRoot);
    return await programVersion("slirp4netns", program, runtime);
  });
  return typeof result === "string" ? result : { problem: result, device: probeTunDevice() };
}

function probeTunDevice(): "usable" | "forbidden" | "missing" {
  try {
    accessSync(tunDevice, constants.R_OK | constants.W_OK);
    return "usable";
  } catch (error) {
    return errorCode(error) === "EACCES" ? "forbidden" : "missing";
  }
}

export interface LimitsProbe {
  controllers: Controllers;
  isRoot: boolean;
  isInContainer?: boolean;
  /** True if the controllers that set limits are in control groups of version 2. */
  hasVersionTwo: boolean;
  /** The cgroup of version 2 whose children can't have limits because it has processes itself, as in a container. */
  crowdedGroup?: string | undefined;
}

const nouns = { memory: "memory", pids: "processes", cpu: "processors" } as const;

/**
 * Reports missing control groups. For an ordinary user, bough itself watches the resources of commands. For root, no RUN starts without
 * a control group that restricts its devices: the status is `severity`.
 */
export function diagnoseLimits(probe: LimitsProbe, severity: "failed" | "warning"): CheckResult {
  const check = "engine's limits";
  const missing = controllerNames.filter((name) => probe.controllers[name] === undefined);
  if (probe.isRoot && missing.length === controllerNames.length && probe.crowdedGroup === undefined) {
    const detail =
      "control groups cannot be created, but as root each RUN needs one that restricts its devices";
    return { check, status: severity, detail, fix: fixFor(probe) };
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
  return { check, status: "warning", detail: details.join("; "), fix: fixFor(probe) };
}

function fixFor({
  controllers,
  isRoot,
  isInContainer,
  hasVersionTwo,
  crowdedGroup: group,
}: LimitsProbe): string {
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

export function probeLimits(isRoot: boolean, isInContainer: boolean): LimitsProbe {
  // As the engine does.
  moveProcessesBelow(ownHierarchies());
  const hierarchies = ownHierarchies();
  const hasVersionTwo = !hierarchies.some(({ controllers }) => controllers.includes("memory"));
  const usable = hierarchies.filter((each) => each.version === 2 && hasVersionTwo && canMakeGroup(each));
  const crowdedGroup = usable.map(containerParent).find(hasOwnProcesses);
  return { controllers: usableControllers(hierarchies), isRoot, isInContainer, hasVersionTwo, crowdedGroup };
}
