import { join } from "node:path";
import { steadyTime } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { type ImageConfig, variablesIn, withDefaultPath } from "../../image/config.ts";
import { startDeadline } from "../../programs/helper.ts";
import { createSemaphore } from "../../semaphore.ts";
import { HostFiles } from "../../service/wire/file.ts";
import { type InstanceResult, mainProcessSpid, sandboxSpid } from "../../service/wire/operation.ts";
import type { Filled } from "../copies/fill-upper.ts";
import type { PreparedMounts } from "../mounts/prepare-mounts.ts";
import type { MountRequest } from "../mounts/requested-mount.ts";
import { argvOf, signalOf } from "../processes/exec-spec.ts";
import { InstanceProcesses } from "../processes/instance-processes.ts";
import { ProcessEvents } from "../processes/process-events.ts";
import type { EventData } from "../records/event-files.ts";
import { DamagedFilesError, dropDamagedFiles } from "../records/files.ts";
import { type Image, layersOf } from "../records/images.ts";
import { lookupDirectory } from "../records/layer-listings.ts";
import { findOperation, type SuccessfulOutcome } from "../records/operations.ts";
import type { OperationRun } from "../run-operation.ts";
import { ownHierarchies, ownMemoryLimit } from "../sandbox/limits/controllers.ts";
import { limitsFor } from "../sandbox/limits/limits.ts";
import { readAccounts } from "../sandbox/root/accounts.ts";
import { runInSandbox } from "../sandbox/sandbox.ts";
import type { SandboxRequest } from "../sandbox/sandbox-request.ts";
import type { EngineState } from "../state.ts";
import { measureMachine } from "../system/machine.ts";
import { makeUpper } from "../system/owner-and-mode.ts";
import { mountableViews } from "../system/user-namespace.ts";
import { ensureImages } from "../unpack/ensure-layers.ts";
import { ensureListed } from "../unpack/ensure-listed.ts";
import { commitChanges, requireLayerWithinLimit } from "./commit-changes.ts";
import { type ResolvedInstance, workingDirectoryOf } from "./spec.ts";

/** Loads the code that copies files only when something is copied: a command that only inspects the engine has to start fast. */
const loadCopies = () => import("../copies/fill-upper.ts");

/** Runs an instance's command and keeps what it changed; see `OperationWork.perform`. */
export async function performInstance(
  state: EngineState,
  instance: ResolvedInstance,
  run: OperationRun,
): Promise<() => SuccessfulOutcome> {
  const append = (spid: number, type: string, data: EventData) =>
    state.events.append(run.uuid, spid, type, data);
  const report = (message: string) => append(sandboxSpid, "progress", { message });
  await ensureImages(state, await imagesOf(state, instance), { signal: run.signal, report });
  if (instance.spec.command === "") return makeImage(state, instance, run);
  const processes = new InstanceProcesses(state, append, instance.spec.terminal);
  state.instances.set(run.uuid, processes);
  try {
    return await runCommand(state, instance, run, processes);
  } finally {
    await processes.end();
    state.instances.delete(run.uuid);
    processes.terminal?.output.abandon();
    processes.terminal?.close();
  }
}

/** Returns the images whose files the instance needs. To add files to one, a listing of it is enough. */
async function imagesOf(
  state: EngineState,
  { image, spec, copies, mounts }: ResolvedInstance,
): Promise<Image[]> {
  const others = [...copies, ...mounts].flatMap((other) => other.image ?? []);
  return spec.command === "" && (await ensureListed(state, image)) ? others : [image, ...others];
}

async function runCommand(
  state: EngineState,
  instance: ResolvedInstance,
  run: OperationRun,
  processes: InstanceProcesses,
): Promise<() => SuccessfulOutcome> {
  const { image, spec, copies } = instance;
  const env = environmentOf(spec.ignoresConfig ? {} : image.config, spec);
  requireVariableCount(env);
  const hasTerminal = spec.terminal !== undefined;
  const layers = layersOf(state.database, image);
  // Making the first network of this process takes as long as everything else before its first command: it starts early.
  state.networks.start(spec.network);
  const runtime = await state.runtime.take(state, layers, {
    hasTerminal,
    ulimits: spec.limits.ulimits,
    signal: run.signal,
  });
  const events = new ProcessEvents(spec.truncateOutputAt, (type, data) =>
    state.events.append(run.uuid, mainProcessSpid, type, data),
  );
  const limits = limitsFor(spec.limits, measureMachine(ownMemoryLimit(ownHierarchies())));
  const mounts = await prepareMounts(state, instance.mounts, spec.timeoutSeconds, run);
  const sandbox: SandboxRequest = {
    runtime,
    id: run.uuid,
    directory: run.directory,
    layers,
    async fill(upper) {
      if (copies.length + spec.entries.length + spec.files.length === 0 && spec.hostFiles === HostFiles.none)
        return;
      const { fillUpper } = await loadCopies();
      await fillUpper(state, upper, instance, { runsCommand: true, signal: run.signal });
    },
    mounts,
    process(root) {
      processes.accounts = readAccounts(root);
      return {
        args: argvOf(spec),
        env,
        secretEnv: mounts.secretEnv,
        cwd: workingDirectoryOf(spec, image),
        terminal: spec.terminal,
        ...processes.accounts(spec.uid ?? 0, spec.gid),
      };
    },
    hostname: spec.hostname,
    network: spec.network,
    extraHosts: spec.extraHosts,
    hasReadonlyNetworkFiles: spec.hasReadonlyNetworkFiles,
    stdin: spec.stdin,
    input: processes.mainInput,
    timeoutSeconds: spec.timeoutSeconds,
    limits,
    onStart(live) {
      events.spawned(live.pid, spec, live.process);
      events.received(spec.stdin.bytes);
      processes.started(live, events);
    },
    terminal: processes.terminal?.descriptor,
    onOutput: (stream, chunk) => processes.terminal?.output.write(chunk) ?? events[stream].write(chunk),
    isCancelled: () => findOperation(state.database, run.uuid)?.cancelRequested === true,
    onKill: () => processes.terminal?.output.abandon(),
    onEnd: () => processes.end(),
    signal: run.signal,
  };
  const outcome = await oneAtATime(run.signal, () => {
    // The command's time begins here: fetching caches before may take long.
    run.begin(runtime.name);
    return runInSandbox(state, sandbox);
  })
    .catch((error: unknown) => dropDamaged(state, error))
    .finally(() => mounts.close());

  const result = events.exited({ ...outcome, signal: signalOf(outcome.exitCode) });
  run.signal.throwIfAborted();
  await requireLayerWithinLimit(state, run, limits.layerBytes, outcome.limitsHit);
  const keep = await commitChanges(state, image, { ...spec, env, exitCode: outcome.exitCode }, run);
  return () => ({ status: "SUCCESS", error: null, result, image: keep() });
}

/** Held by the command that runs, where commands share this machine's `/proc`. */
const commandSemaphore = createSemaphore(1);

/** Runs commands one at a time if they would see each other's processes, and through these the variables, files and secrets. */
async function oneAtATime<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
  if (mountableViews().proc) return work();
  const release = await commandSemaphore.acquire(signal);
  try {
    return await work();
  } finally {
    release();
  }
}

/** A runtime's time grows with the square of the number of variables: it is a second or two for this number, hours for a million. */
const maxVariables = 20_000;

function requireVariableCount(env: Readonly<Record<string, string>>): void {
  const count = Object.keys(env).length;
  if (count > maxVariables)
    throw new BoughError(
      `the command would have ${count} variables, with those of its image, and at most ${maxVariables} are supported`,
    );
}

/** Makes an image with its files and copies, for a request without a command. Starts no process. */
async function makeImage(
  state: EngineState,
  instance: ResolvedInstance,
  run: OperationRun,
): Promise<() => SuccessfulOutcome> {
  const { image, spec } = instance;
  const startedAt = steadyTime(state.clock);
  const upper = join(run.directory, "upper");
  makeUpper(upper, lookupDirectory(state, image.layer));
  let filled: Filled;
  const deadline = startDeadline(state.clock, spec.timeoutSeconds, "the files and copies were not in place");
  try {
    const signal = AbortSignal.any([run.signal, deadline.signal]);
    const { fillUpper } = await loadCopies();
    filled = await fillUpper(state, upper, instance, { runsCommand: false, signal });
  } catch (error) {
    return dropDamaged(state, error);
  } finally {
    deadline.end();
  }
  await requireLayerWithinLimit(state, run, spec.limits.max_layer_bytes, []);
  const env = environmentOf(image.config, spec);
  const keep = await commitChanges(state, image, { ...spec, env, filled, exitCode: undefined }, run);
  const nothing = { value: "", encoding: "ascii", truncated: false };
  const result: InstanceResult = {
    state: { exit_code: 0, signal: -1, timed_out: false },
    stdout: nothing,
    stderr: nothing,
    resources: { elapsed_time: (steadyTime(state.clock) - startedAt) / 1000 },
  };
  return () => ({ status: "SUCCESS", error: null, result, image: keep() });
}

/** Waits for locked caches no longer than the command's timeout, in which the time to fetch their contents does not count. */
async function prepareMounts(
  state: EngineState,
  mounts: readonly MountRequest[],
  seconds: number,
  run: OperationRun,
): Promise<PreparedMounts> {
  const expiry = new AbortController();
  const start = () => {
    const { signal, end } = startDeadline(state.clock, seconds, "the mounts were not in place");
    signal.addEventListener("abort", () => expiry.abort(signal.reason), { once: true });
    return { end };
  };
  let deadline = start();
  const signal = AbortSignal.any([run.signal, expiry.signal]);
  const { prepareRequestedMounts } = await import("../mounts/prepare-mounts.ts");
  return prepareRequestedMounts(state, mounts, { ...run, signal }, async (contents, directory) => {
    deadline.end();
    try {
      // Loaded only for a cache that comes from elsewhere.
      const { unpackCache } = await import("../unpack/ensure-layers.ts");
      await unpackCache(state, contents, directory, run.signal);
    } finally {
      deadline = start();
    }
  })
    .catch((error: unknown) => dropDamaged(state, error))
    .finally(() => deadline.end());
}

function dropDamaged({ database, layout }: EngineState, error: unknown): never {
  if (error instanceof DamagedFilesError) dropDamagedFiles(database, layout, error.damaged);
  throw error;
}

function environmentOf(config: ImageConfig, { env }: ResolvedInstance["spec"]): Record<string, string> {
  return { ...Object.fromEntries(withDefaultPath(variablesIn(config))), ...env };
}
