import { closeSync, fstatSync, readFileSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { release } from "node:os";
import { BoughError } from "../../../errors.ts";
import type { Environment } from "../../../home-directory.ts";
import { machineArchitecture } from "../../../image/platform.ts";
import { libc, openMemoryFile } from "../../../programs/libc.ts";
import { comparableLimit, type ResourcesLimits } from "../../../service/wire/instance.ts";
import { sha256Of } from "../../../sha256.ts";
import type { Layout } from "../../layout.ts";
import { findOptionalProgram, MissingProgramError } from "../../system/programs.ts";
import { mountableViews, viewsInUserNamespace } from "../../system/user-namespace.ts";
import {
  type Controllers,
  canMakeGroup,
  type Hierarchy,
  ownHierarchies,
  usableControllers,
} from "../limits/controllers.ts";
import { groupVersion, moveProcessesBelow } from "../limits/own-groups.ts";
import { grantedWith } from "../sandbox-process.ts";
import type { SandboxHost, SandboxRequest } from "../sandbox-request.ts";
import { invertedFilter } from "../seccomp.ts";
import { Crun, type CrunSettings } from "./crun.ts";
import { findRunc } from "./runc.ts";
import type { ContainerRuntime } from "./runtime.ts";
import type { TrialResult } from "./trial.ts";
import { readTrial, recordTrial } from "./trial-record.ts";

/** The value of `BOUGH_RUNTIME`; `undefined` for crun if it works, and else runc. */
type WantedRuntime = ContainerRuntime["name"] | undefined;

/** Chooses the runtime of commands: crun, which takes a third of runc's time, if it has passed a trial; else runc. */
export class RuntimeChoice {
  /** The chosen runtime, and the signal of the command that started the trial. */
  #chosen: { runtime: Promise<ContainerRuntime>; signal: AbortSignal } | undefined;

  /**
   * Returns the runtime for a command on these layers. With a terminal it is runc, since crun does not pass on a new size, and
   * also with limits under which crun can't start a command.
   */
  async take(
    host: SandboxHost,
    layers: SandboxRequest["layers"],
    options: { hasTerminal: boolean; ulimits?: ResourcesLimits["ulimits"]; signal: AbortSignal },
  ): Promise<ContainerRuntime> {
    moveProcessesBelow(ownHierarchies());
    if (options.hasTerminal) return requireRunc(host.environment, "it does not pass on a terminal's size");
    if (areTooLow(options.ulimits))
      return requireRunc(host.environment, "the limits (--ulimit) are too low for it");
    const { signal } = options;
    this.#chosen ??= { runtime: choose(host, layers, signal), signal };
    const chosen = this.#chosen;
    try {
      return await chosen.runtime;
    } catch (error) {
      if (this.#chosen === chosen) this.#chosen = undefined;
      // An aborted command must not fail other commands that wait for the same trial.
      if (chosen.signal.aborted && !signal.aborted) return this.take(host, layers, options);
      throw error;
    }
  }

  /** Call it when all commands have ended. */
  async close(): Promise<void> {
    const runtime = await this.#chosen?.runtime.catch(() => undefined);
    this.#chosen = undefined;
    if (runtime instanceof Crun) runtime.close();
  }
}

/**
 * The lowest limits under which crun surely starts a command. It sets them first, then opens some 25 files, and writes its system
 * call filter of up to 32 KiB to a file.
 */
const crunNeeds = { fsize: 64 * 1024, nofile: 64 };

function areTooLow(ulimits: ResourcesLimits["ulimits"] = {}): boolean {
  return (["fsize", "nofile"] as const).some((name) => {
    const { soft } = ulimits[name] ?? { soft: -1 };
    return comparableLimit(soft) < crunNeeds[name];
  });
}

async function choose(
  host: SandboxHost,
  layers: SandboxRequest["layers"],
  signal: AbortSignal,
): Promise<ContainerRuntime> {
  const { environment, layout, inUserNamespace } = host;
  const wanted = wantedRuntime(environment);
  if (wanted === "runc") return requireRunc(environment, "BOUGH_RUNTIME is runc");
  const found = findCrun(layout, environment, inUserNamespace);
  const result = "problem" in found ? found : await tryCandidate(host, found, layers, signal);
  if (result instanceof Crun) return result;
  if (wanted === "crun")
    throw new BoughError(`BOUGH_RUNTIME is crun, which cannot be used: ${result.problem}`, {
      hint: "Unset BOUGH_RUNTIME to use runc.",
    });
  return requireRunc(environment, result.problem);
}

/** Returns runc. If it can't be used, throws with the reason why crun can't be used either. */
function requireRunc(environment: Environment, reason: string): ContainerRuntime {
  if (!mountableViews().proc)
    throw new BoughError(
      `this command needs runc, which cannot start one where parts of /proc are hidden, and crun cannot be used: ${reason}`,
      { hint: "In a container: start it with --security-opt systempaths=unconfined." },
    );
  if (findOptionalProgram("runc", environment) !== undefined) return findRunc(environment);
  throw new MissingProgramError(`runc is not installed, and crun cannot be used: ${reason}`, {
    hint: "Install the package runc: apt-get install runc",
  });
}

/** Returns crun if it has passed its trial. */
async function tryCandidate(
  host: SandboxHost,
  { crun: found, key }: Candidate,
  layers: SandboxRequest["layers"],
  signal: AbortSignal,
): Promise<Crun | { problem: string }> {
  const known = readTrial(host.layout, key, host.clock.now());
  if (known !== undefined && "problem" in known) return known;
  const crun = { ...found, copy: openSealedCopy(found.program) };
  let hasPassed = false;
  try {
    const result = known ?? (await tryAndRecord(host, { crun, key }, layers, signal));
    hasPassed = "filter" in result;
    return "filter" in result ? new Crun({ ...crun, filter: result.filter }) : result;
  } finally {
    if (!hasPassed) new Crun({ ...crun, filter: undefined }).close();
  }
}

async function tryAndRecord(
  host: SandboxHost,
  { crun, key }: { crun: Omit<CrunSettings, "filter">; key: string },
  layers: SandboxRequest["layers"],
  signal: AbortSignal,
): Promise<TrialResult> {
  const { tryCrun } = await import("./trial.ts");
  const result = await tryCrun(host, crun, layers, signal);
  // The result of an aborted trial means nothing.
  signal.throwIfAborted();
  recordTrial(host.layout, key, result, host.clock.now());
  return result;
}

export function wantedRuntime({ BOUGH_RUNTIME: name = "" }: Environment): WantedRuntime {
  if (name === "") return undefined;
  if (name === "runc" || name === "crun") return name;
  throw new BoughError(`BOUGH_RUNTIME must be runc or crun, not ${JSON.stringify(name)}`);
}

/** A crun that may be tried. */
interface Candidate {
  crun: Omit<CrunSettings, "filter" | "copy">;
  /** The key of its trial's result. Another program, kernel or set of control groups requires a new trial. */
  key: string;
}

export function findCrun(
  layout: Pick<Layout, "containers">,
  environment: Environment,
  inUserNamespace: boolean,
  hierarchies: readonly Hierarchy[] = ownHierarchies(),
): Candidate | { problem: string } {
  const program = findOptionalProgram("crun", environment);
  if (program === undefined) return { problem: "it is not installed" };
  const controllers = usableControllers(hierarchies);
  const problem = groupProblem(hierarchies, controllers, inUserNamespace);
  if (problem !== undefined) return { problem };
  const path = realpathSync(program);
  const { size, mtimeMs } = statSync(path);
  const crun = { program, state: statePlace(layout, hierarchies) };
  const filter = invertedFilter(machineArchitecture(), grantedWith({ kind: "none" }));
  const groups = [groupVersion(hierarchies), controllers];
  const views = inUserNamespace ? viewsInUserNamespace() : undefined;
  const parts = [path, size, mtimeMs, release(), crun.state, inUserNamespace, views, filter, groups];
  const key = sha256Of(JSON.stringify(parts));
  return { crun, key };
}

/** Returns true if this process can make control groups that keep devices from a command. */
export function canRestrictDevices(): boolean {
  return groupProblem(ownHierarchies(), {}, false) === undefined;
}

/** Returns why crun can't be limited with these control groups; `undefined` if it can. */
export function groupProblem(
  hierarchies: readonly Hierarchy[],
  controllers: Controllers,
  inUserNamespace: boolean,
): string | undefined {
  const version = groupVersion(hierarchies);
  if (Object.values(controllers).some((each) => each.version !== version))
    return "some of the needed controllers are in control groups of version 1 and others in version 2";
  const devices = hierarchies.find(
    (each) => each.version === version && (version === 2 || each.controllers.includes("devices")),
  );
  if (!inUserNamespace && (devices === undefined || !canMakeGroup(devices)))
    return "there is no control group that can restrict a command's devices";
  return undefined;
}

/** crun 1.8 detects a version 2 beside version 1 by this directory, and refuses to run. */
const unified = "/sys/fs/cgroup/unified";

/** Returns the directory that crun's state covers: preferably one that crun must not see, so that one mount does both. */
function statePlace(layout: Pick<Layout, "containers">, hierarchies: readonly Hierarchy[]): string {
  return hierarchies.some(({ mountPoint }) => mountPoint === unified) ? unified : layout.containers;
}

/** The values of linux/fcntl.h. */
const [addSeals, allSeals] = [1033, 0xf];

/**
 * Copies a program to a sealed file in memory, which can't be changed. For each container, crun restarts itself from such a copy,
 * so that no container can reach its file. Started from a copy, it skips that, which is half of its start. Returns a descriptor;
 * `undefined` if the system has no such files, or does not allow running them.
 */
export function openSealedCopy(program: string): number | undefined {
  let descriptor: number | undefined;
  try {
    descriptor = openMemoryFile("crun");
    if (descriptor === undefined) return undefined;
    writeFileSync(descriptor, readFileSync(program));
    const mayBeRun = (fstatSync(descriptor).mode & 0o111) !== 0;
    if (mayBeRun && libc().fcntl(descriptor, addSeals, allSeals) === 0) return descriptor;
  } catch {
    // The program's file is run instead.
  }
  if (descriptor !== undefined) closeSync(descriptor);
  return undefined;
}
