import { rm } from "node:fs/promises";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import { variablesIn, withVariables } from "../../image/config.ts";
import { commandLine } from "../processes/exec-spec.ts";
import { InstanceProcesses } from "../processes/instance-processes.ts";
import { ProcessEvents } from "../processes/process-events.ts";
import { signalOf } from "../processes/signals.ts";
import { mainProcessSpid, sandboxSpid } from "../records/event-files.ts";
import { dropDamagedFiles } from "../records/files.ts";
import { addImage, type Image } from "../records/images.ts";
import { addLayer, findLayer, layerChain, layerDirectory } from "../records/layers.ts";
import type { Outcome } from "../records/operations.ts";
import type { OperationRun } from "../run-operation.ts";
import { ownMemoryLimit } from "../sandbox/limits/controllers.ts";
import { ownHierarchies } from "../sandbox/limits/hierarchies.ts";
import { layerSize } from "../sandbox/limits/layer-size.ts";
import { limitsFor } from "../sandbox/limits/limits.ts";
import { readAccounts } from "../sandbox/root/accounts.ts";
import { isUnchanged } from "../sandbox/root/mount-points.ts";
import { DamagedFilesError } from "../sandbox/root/staging.ts";
import { runInSandbox } from "../sandbox/sandbox.ts";
import type { SandboxOutcome } from "../sandbox/sandbox-request.ts";
import type { EngineState } from "../state.ts";
import { syncToDisk } from "../system/disk.ts";
import { measureMachine } from "../system/machine-size.ts";
import { workingDirectoryOf } from "./metadata.ts";
import type { InstanceSpec } from "./spec.ts";

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Runs an instance's command and keeps what it changed; see `OperationWork.perform`. */
export async function performInstance(
  state: EngineState,
  image: Image,
  spec: InstanceSpec,
  run: OperationRun,
): Promise<() => Outcome> {
  const processes = new InstanceProcesses(state, (spid, type, data) =>
    state.events.append(run.uuid, spid, type, data),
  );
  state.instances.set(run.uuid, processes);
  try {
    return await runCommand(state, image, spec, run, processes);
  } finally {
    await processes.end();
    state.instances.delete(run.uuid);
  }
}

async function runCommand(
  state: EngineState,
  image: Image,
  spec: InstanceSpec,
  run: OperationRun,
  processes: InstanceProcesses,
): Promise<() => Outcome> {
  const events = new ProcessEvents(spec.truncateOutputAt, (type, data) =>
    state.events.append(run.uuid, mainProcessSpid, type, data),
  );
  const env = { PATH: defaultPath, ...variablesIn(image.config), ...spec.env };
  const [top, ...below] = layerChain(state.database, image.layer);
  if (top === undefined) throw new Error(`the layers of image ${image.uuid} are gone`);

  const limits = limitsFor(spec.limits, measureMachine(ownMemoryLimit(ownHierarchies())));
  const outcome = await runInSandbox(state, {
    id: run.uuid,
    directory: run.directory,
    layers: [top, ...below],
    files: spec.files,
    process(root) {
      processes.accounts = readAccounts(root);
      return {
        args: commandLine(spec),
        env,
        cwd: workingDirectoryOf(spec, image),
        ...processes.accounts(spec.uid ?? 0, spec.gid),
      };
    },
    hostname: spec.hostname,
    network: spec.network,
    stdin: spec.stdin,
    input: processes.mainInput,
    timeoutSeconds: spec.timeoutSeconds,
    limits,
    onStart(live) {
      events.spawned(live.pid, spec, live.process);
      events.received(spec.stdin.bytes);
      processes.started(live, events);
    },
    onOutput: (stream, chunk) => events[stream].write(chunk),
    onEnd: () => processes.end(),
    signal: run.signal,
  }).catch((error: unknown) => {
    if (error instanceof DamagedFilesError) dropDamagedFiles(state.database, state.layout, error.damaged);
    throw error;
  });

  run.signal.throwIfAborted();
  const result = events.exited({ ...outcome, signal: signalOf(outcome.exitCode) });
  if (limits.layerBytes !== undefined) await requireSmallLayer(state, run, limits.layerBytes, outcome);
  const keep = await keepChanges(state, image, { ...spec, env }, run);
  return () => ({ status: "SUCCESS", error: null, result, image: keep() });
}

/** However short the command was: nothing is stored that is over the limit. */
async function requireSmallLayer(
  { events }: EngineState,
  { uuid, directory, signal }: OperationRun,
  limit: number,
  { limitsHit }: SandboxOutcome,
): Promise<void> {
  const size = await layerSize(join(directory, "upper"), limit, signal);
  if (size <= limit && !limitsHit.some((hit) => hit.limit === "max_layer_bytes")) return;
  // It is counted no further than it has to be, or may be out of reach: it is over the limit all the same.
  const counted = Number.isFinite(size) ? Math.max(size, limit) : limit;
  events.append(uuid, sandboxSpid, "size_cap", { limit_bytes: limit, file_size: counted });
  throw new BoughError(`the layer has grown past max_layer_bytes (${limit}), and is not kept`);
}

/** Returns how to make the result an image, for the transaction that ends the operation. */
async function keepChanges(
  state: EngineState,
  image: Image,
  spec: Pick<InstanceSpec, "disposable" | "preserveEnv" | "env">,
  run: OperationRun,
): Promise<() => string | undefined> {
  const upper = join(run.directory, "upper");
  if (spec.disposable) {
    // Whoever learns that this has ended finds its room on the disk free again.
    await rm(upper, { recursive: true, force: true });
    return () => undefined;
  }
  const unchanged = isUnchanged(layerDirectory(state.layout, image.layer), upper);
  if (unchanged && !spec.preserveEnv) return () => image.uuid;
  const config = spec.preserveEnv ? withVariables(image.config, spec.env) : image.config;
  if (!unchanged) await syncToDisk(state, upper, run.signal);
  return () => {
    const { database, layout } = state;
    const createdAt = state.clock.now();
    const parent = findLayer(database, image.layer);
    const layer = unchanged
      ? image.layer
      : addLayer(database, layout, { directory: upper, parent, createdAt }).id;
    return addImage(database, { layer, config, operation: run.uuid, createdAt });
  };
}
