/** Checks that the machine has what the embedded engine needs, without starting the engine. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { processNamespace } from "../../engine/sandbox/root/mount-namespace.ts";
import { emulatedPlatforms } from "../../engine/system/emulation.ts";
import { engineTrials, findWrongProgram } from "../../engine/system/program-trials.ts";
import { findOptionalProgram, helperEnvironment, missingPrograms } from "../../engine/system/programs.ts";
import { viewsInUserNamespace } from "../../engine/system/user-namespace.ts";
import { BoughError, messageOf } from "../../errors.ts";
import { isInUserNamespace } from "../../own-path.ts";
import { runHelper } from "../../programs/helper.ts";
import { type ContainerKind, findContainer } from "../process/container.ts";
import { type Runtime, stateDirectory } from "../process/runtime.ts";
import {
  findUserNamespaceProblem,
  needsUserNamespace,
  userNamespaceEntry,
} from "../process/user-namespace.ts";
import { attempt, type CheckResult, failedCheck, maxTrialSeconds, programVersion } from "./check-result.ts";
import {
  diagnoseLimits,
  diagnoseNetwork,
  diagnoseRuntime,
  type LimitsProbe,
  type NetworkProbe,
  probeLimits,
  probeNetwork,
  probeRuntime,
  type RuntimeProbe,
} from "./runtime.ts";

export interface EngineProbe {
  container: ContainerProbe | undefined;
  isRoot: boolean;
  /** The error if a user other than root cannot create a user namespace. */
  namespaceProblem: BoughError | undefined;
  missing: readonly { program: string; package: string }[];
  /** Names and versions of the programs, such as `runc 1.1.5`; an error if one lacks an option that the engine needs. */
  versions: readonly string[] | BoughError;
  /** The result of an overlay mount; `untried` if it can't be tried, or if a helper program lacks an option. */
  overlay: "mounted" | "untried" | { problem: string };
  runtime: RuntimeProbe;
  network: NetworkProbe;
  limits: LimitsProbe | "untried";
  /** Other platforms whose programs run here; `undefined` if it can't be told. */
  emulated: readonly string[] | undefined;
}

/** Returns the results of all checks. `isNeeded`: no other service is configured, so that a missing requirement is a failure. */
export function diagnoseEngine(probe: EngineProbe, isNeeded: boolean): CheckResult[] {
  const {
    container,
    isRoot,
    namespaceProblem,
    missing,
    versions,
    overlay,
    runtime,
    network,
    limits,
    emulated,
  } = probe;
  const severity = isNeeded ? "failed" : "warning";
  return [
    ...(container === undefined ? [] : [diagnoseContainer(container, namespaceProblem === undefined)]),
    namespaceProblem === undefined
      ? { check: "engine's user", status: "ok", detail: isRoot ? "root" : "root of a user namespace" }
      : failedCheck("engine's user", namespaceProblem, severity),
    diagnosePrograms(missing, versions, severity),
    ...(overlay === "untried" ? [] : [diagnoseOverlay(overlay, severity)]),
    ...(missing.length > 0 || overlay !== "mounted" ? [] : [diagnoseRuntime(runtime, severity)]),
    ...diagnoseNetwork(network),
    ...(limits === "untried" ? [] : [diagnoseLimits(limits, severity)]),
    ...(emulated === undefined ? [] : [diagnosePlatforms(emulated)]),
  ];
}

/** Reports platforms that can be emulated. The status is `ok` even without any, since few builds need them. */
export function diagnosePlatforms(emulated: readonly string[]): CheckResult {
  const install = "apt-get install qemu-user-static binfmt-support";
  const detail =
    emulated.length === 0
      ? `only the machine's own: a RUN for another one (--platform) needs an interpreter (${install})`
      : `the machine's own, and through interpreters ${emulated.join(", ")}`;
  return { check: "emulation", status: "ok", detail };
}

function diagnosePrograms(
  missing: EngineProbe["missing"],
  versions: EngineProbe["versions"],
  severity: "failed" | "warning",
): CheckResult {
  const check = "engine's programs";
  if (missing.length > 0) {
    const detail = `missing: ${missing.map(({ program }) => program).join(", ")}`;
    const fix = `apt-get install ${missing.map((entry) => entry.package).join(" ")}`;
    return { check, status: severity, detail, fix };
  }
  if (versions instanceof BoughError) return failedCheck(check, versions, severity);
  return { check, status: "ok", detail: versions.join(", ") };
}

function diagnoseOverlay(
  overlay: "mounted" | { problem: string },
  severity: "failed" | "warning",
): CheckResult {
  const check = "engine's layers";
  if (overlay === "mounted") return { check, status: "ok", detail: "overlayfs can be mounted" };
  return {
    check,
    status: severity,
    detail: `overlayfs can't be mounted: ${overlay.problem}`,
    fix: "It needs Linux 5.11 or later, and BOUGH_HOME on ext4, xfs, btrfs or tmpfs (in a container: a volume, or --tmpfs).",
  };
}

export async function probeEngine(runtime: Runtime): Promise<EngineProbe> {
  const needsNamespace = await needsUserNamespace(runtime);
  const started = probeRuntime(runtime, needsNamespace);
  const missing = missingPrograms(runtime.environment).filter(
    ({ program }) => program !== "runc" || typeof started.crun === "object",
  );
  const namespaceProblem = needsNamespace ? await findUserNamespaceProblem(runtime) : undefined;
  const incompatibleHelper =
    missing.length > 0 || namespaceProblem !== undefined
      ? undefined
      : await attempt(runtime, () => findWrongProgram(engineTrials, runtime));
  const cannotTry =
    incompatibleHelper !== undefined ||
    namespaceProblem !== undefined ||
    missing.some(({ program }) => /^(unshare|mount|sh)$/.test(program));
  const overlay = cannotTry ? "untried" : await tryOverlay(runtime, needsNamespace);
  const container = probeContainer(runtime, needsNamespace);
  return {
    container,
    isRoot: !needsNamespace,
    namespaceProblem,
    missing,
    versions:
      missing.length > 0
        ? []
        : (incompatibleHelper ?? (await attempt(runtime, () => programVersions(runtime)))),
    overlay,
    runtime: started,
    // If no layer can be mounted, no command runs that would need a network.
    network: overlay === "mounted" ? await probeNetwork(runtime, !needsNamespace) : "untried",
    limits: overlay === "mounted" ? probeLimits(!needsNamespace, container !== undefined) : "untried",
    emulated: emulatedPlatforms(),
  };
}

async function programVersions(runtime: Runtime): Promise<string[]> {
  const versions: string[] = [];
  for (const program of ["runc", "crun", "skopeo"] as const) {
    const path = findOptionalProgram(program, runtime.environment);
    if (path !== undefined) versions.push(await programVersion(program, path, runtime));
  }
  return versions;
}

/** The script of the trial. It cleans up in its mount namespace, since an ordinary user can't remove what overlayfs leaves. */
const overlayTrial = `mkdir lower upper work merged
mount -t overlay -o "$1" overlay merged; status=$?
umount merged 2>&-; rm -rf lower upper work merged; exit $status`;

/** Tries a mount with the helpers and options of a command's mount namespace. */
async function tryOverlay(runtime: Runtime, needsNamespace: boolean): Promise<EngineProbe["overlay"]> {
  const directory = makeTrialDirectory(runtime);
  if (directory === undefined) return "untried";
  const { environment, clock, signal } = runtime;
  const options = `lowerdir=lower,upperdir=upper,workdir=work${needsNamespace ? ",userxattr" : ""}`;
  const entry = [
    "unshare",
    "--mount",
    ...processNamespace(!needsNamespace || viewsInUserNamespace().proc),
    "setpriv",
    "--pdeathsig",
    "KILL",
  ];
  const command = [...(needsNamespace ? userNamespaceEntry : []), ...entry];
  try {
    const { status, stderr } = await runHelper([...command, "sh", "-c", overlayTrial, "sh", options], {
      workingDirectory: directory,
      environment: helperEnvironment(environment),
      clock,
      signal,
      seconds: maxTrialSeconds,
    });
    if (status === 0) return "mounted";
    return { problem: stderr.split("\n")[0]?.trim() || `exit code ${status}` };
  } catch (error) {
    signal.throwIfAborted();
    return { problem: messageOf(error) };
  } finally {
    remove(directory);
  }
}

/** Removes the directory, which is empty unless the trial was stopped. Then an ordinary user can't remove what overlayfs left. */
function remove(directory: string): void {
  try {
    rmSync(directory, { recursive: true, force: true });
  } catch {
    // The diagnosis does not depend on it.
  }
}

/** Returns `undefined` if the directory can't be made, which the check of the state directory reports. */
function makeTrialDirectory(runtime: Runtime): string | undefined {
  try {
    const parent = stateDirectory(runtime);
    mkdirSync(parent, { recursive: true, mode: 0o700 });
    return mkdtempSync(join(parent, "overlay-trial-"));
  } catch {
    return undefined;
  }
}

export interface ContainerProbe {
  kind: ContainerKind;
  /** The row of the table in `bough help ci`. */
  row: "privileged" | "privileged, with users of its own" | "root" | "user";
  /** False if parts of `/proc` are hidden, so that a RUN gets the container's. */
  hasOwnProc: boolean;
}

/** Reports the kind of container that bough runs in. `canBuild`: false if no user namespace can be created, which another check reports. */
export function diagnoseContainer({ kind, row, hasOwnProc }: ContainerProbe, canBuild: boolean): CheckResult {
  const check = "container";
  if (!canBuild)
    return {
      check,
      status: "ok",
      detail: `${kind}, not in the table of \`bough help ci\`: see engine's user`,
    };
  const place = `${kind}, in row "${row}" of \`bough help ci\``;
  if (hasOwnProc) return { check, status: "ok", detail: place };
  const detail = `${place}; parts of /proc are hidden, so a RUN sees this container's processes, and no process can be started beside its command`;
  const fix =
    kind === "Kubernetes"
      ? "Set procMount: Unmasked of the container's securityContext, which needs hostUsers: false."
      : "Start the container with --security-opt systempaths=unconfined (Podman: unmask=ALL).";
  return { check, status: "warning", detail, fix };
}

/** Finds the container that bough runs in; `undefined` outside of containers. */
function probeContainer(runtime: Runtime, needsNamespace: boolean): ContainerProbe | undefined {
  const kind = findContainer(runtime.environment);
  if (kind === undefined) return undefined;
  const hasOwnUsers = isInUserNamespace();
  const hasOwnProc = (!needsNamespace && !hasOwnUsers) || viewsInUserNamespace().proc;
  if (needsNamespace) return { kind, row: runtime.userId === 0 ? "root" : "user", hasOwnProc };
  return { kind, row: hasOwnUsers ? "privileged, with users of its own" : "privileged", hasOwnProc };
}
