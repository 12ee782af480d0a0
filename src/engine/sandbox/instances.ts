import { rm } from "node:fs/promises";
import { join } from "node:path";
import { secretsAmong } from "../../dockerfile/secrets.ts";
import { BoughError } from "../../errors.ts";
import type { InstanceResult } from "../../service/types.ts";
import { mainProcess, sandbox } from "../records/event-log.ts";
import { dropDamagedFiles } from "../records/files.ts";
import { addImage, type Image, type ImageConfig } from "../records/images.ts";
import { addLayer, findLayer, layerChain, layerDirectory } from "../records/layers.ts";
import type { Outcome } from "../records/operations.ts";
import type { OperationRun } from "../run-operation.ts";
import type { EngineState } from "../state.ts";
import { syncToDisk } from "../system/disk.ts";
import { measureMachine } from "../system/machine-size.ts";
import { resolveAccount } from "./accounts.ts";
import { ownMemoryLimit } from "./controllers.ts";
import { ownHierarchies } from "./hierarchies.ts";
import type { InstanceSpec } from "./instance-spec.ts";
import { layerSize } from "./layer-size.ts";
import { limitsFor } from "./limits.ts";
import { isUnchanged } from "./mount-points.ts";
import { CapturedStream, encodeBytes } from "./output.ts";
import { runInSandbox } from "./sandbox.ts";
import type { SandboxProcess } from "./sandbox-config.ts";
import type { SandboxOutcome } from "./sandbox-request.ts";
import { DamagedFilesError } from "./staging.ts";

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Runs an instance's command and keeps what it changed; see `OperationWork.perform`. */
export async function performInstance(
  state: EngineState,
  image: Image,
  spec: InstanceSpec,
  run: OperationRun,
): Promise<() => Outcome> {
  const append = (spid: number, type: string, data: Record<string, unknown>) =>
    state.events.append(run.uuid, spid, type, data);
  const capture = (stream: "stdout" | "stderr") =>
    new CapturedStream(spec.truncateOutputAt, (chunk) => append(mainProcess, stream, encodeBytes(chunk)));
  const streams = { stdout: capture("stdout"), stderr: capture("stderr") };
  const env = { PATH: defaultPath, ...image.config.env, ...spec.env };
  const [top, ...below] = layerChain(state.database, image.layer);
  if (top === undefined) throw new Error(`the layers of image ${image.uuid} are gone`);

  const limits = limitsFor(spec.limits, measureMachine(ownMemoryLimit(ownHierarchies())));
  const outcome = await runInSandbox(state, {
    id: run.uuid,
    directory: run.directory,
    chain: [top, ...below],
    files: spec.files,
    process: (root) => ({
      args: spec.args,
      env,
      cwd: spec.cwd ?? image.config.workingDirectory ?? "/root",
      ...resolveAccount(root, spec.uid, spec.gid),
    }),
    hostname: spec.hostname,
    network: spec.network,
    stdin: spec.stdin,
    timeoutSeconds: spec.timeoutSeconds,
    limits,
    onStart: (pid, process) => append(sandbox, "spawn", spawnData(pid, process)),
    onOutput: (stream, chunk) => streams[stream].write(chunk),
    signal: run.signal,
  }).catch((error: unknown) => {
    if (error instanceof DamagedFilesError) dropDamagedFiles(state.database, state.layout, error.damaged);
    throw error;
  });

  run.signal.throwIfAborted();
  const result = resultOf(outcome, streams);
  for (const [stream, captured] of Object.entries(streams)) {
    if (captured.droppedBytes === 0) continue;
    const { emittedBytes, droppedBytes } = captured;
    append(sandbox, "truncated", { stream, bytes_emitted: emittedBytes, bytes_dropped: droppedBytes });
  }
  append(sandbox, "exit", exitData(outcome, result));
  if (limits.layerBytes !== undefined) await requireSmallLayer(run, limits.layerBytes, outcome);
  const keep = await keepChanges(state, image, { ...spec, env }, run);
  return () => ({ status: "SUCCESS", error: null, result, image: keep() });
}

/** However short the command was: nothing is stored that is over the limit. */
async function requireSmallLayer(
  { directory, signal }: OperationRun,
  limit: number,
  { limitsHit }: SandboxOutcome,
): Promise<void> {
  const isOver =
    limitsHit.some((hit) => hit.limit === "max_layer_bytes") ||
    (await layerSize(join(directory, "upper"), limit, signal)) > limit;
  if (isOver) throw new BoughError(`the layer has grown past max_layer_bytes (${limit}), and is not kept`);
}

/** Answers how to make the result an image, for the transaction that ends the operation. */
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
  const config: ImageConfig = spec.preserveEnv ? { ...image.config, env: spec.env } : image.config;
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

function spawnData(pid: number, process: SandboxProcess): Record<string, unknown> {
  const [command, ...args] = process.args;
  const { cwd, uid, gid, env: given } = process;
  const variables = Object.entries(given);
  const { has, mask } = secretsAmong(variables);
  const env = Object.fromEntries(
    variables.map(([name, value]) => [name, has(name) ? masked(value, mask) : value]),
  );
  return {
    pid,
    command: command === undefined ? command : mask(command),
    args: args.map(mask),
    cwd,
    uid,
    gid,
    env,
  };
}

/** Of a secret nothing; of an address with a password in it all the rest. */
function masked(value: string, mask: (text: string) => string): string {
  const shown = mask(value);
  return shown === value ? "***" : shown;
}

function resultOf(
  outcome: SandboxOutcome,
  streams: Record<"stdout" | "stderr", CapturedStream>,
): InstanceResult {
  for (const stream of Object.values(streams)) stream.end();
  return {
    state: {
      exit_code: outcome.exitCode,
      pid: outcome.pid,
      signal: signalOf(outcome.exitCode),
      timed_out: outcome.timedOut,
    },
    stdout: streams.stdout.toWire(),
    stderr: streams.stderr.toWire(),
    resources: { elapsed_time: outcome.elapsedSeconds },
    ...(outcome.limitsHit.length === 0 ? {} : { limits_hit: [...outcome.limitsHit] }),
  };
}

function exitData(outcome: SandboxOutcome, result: InstanceResult): Record<string, unknown> {
  return {
    pid: outcome.pid,
    code: outcome.exitCode,
    signal: signalOf(outcome.exitCode),
    timed_out: outcome.timedOut,
    duration_ms: Math.round(outcome.elapsedSeconds * 1000),
    resources: result.resources,
    ...(result.limits_hit === undefined ? {} : { limits_hit: result.limits_hit }),
  };
}

/** runc tells of a signal as shells do, by 128 and its number; -1: none. */
function signalOf(exitCode: number): number {
  return exitCode > 128 && exitCode <= 128 + 64 ? exitCode - 128 : -1;
}
