import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { machine, release } from "node:os";
import { join } from "node:path";
import { inTransaction } from "../database.ts";
import { causeOf } from "../errors.ts";
import { type OperationKind, sandboxSpid } from "../service/wire/operation.ts";
import { describeFault, findDiskError, isDiskFull } from "./faults.ts";
import { NoRoomError } from "./import-limits.ts";
import type { Layout } from "./layout.ts";
import { findImage, requireImageRecord } from "./records/images.ts";
import { removeOrphanedLayers } from "./records/layers.ts";
import {
  addOperation,
  describeCompletion,
  type FailedOutcome,
  findOperation,
  finishOperation,
  type Operation,
  type RecordedOutcome,
  requestCancel,
  type SuccessfulOutcome,
} from "./records/operations.ts";
import { hasFailedSync, requireNoFailedSync } from "./records/unsynced-layers.ts";
import type { ContainerRuntime } from "./sandbox/runtime/runtime.ts";
import type { EngineState } from "./state.ts";
import { stopHelper } from "./system/helper-process.ts";

interface OperationWork {
  kind: OperationKind;
  metadata: Record<string, unknown>;
  /** True if the operation runs a command. `perform` then calls `begin` with the runtime. */
  hasCommand?: boolean;
  /** An image that can't be removed until the operation ends. */
  startImage?: string;
  /** Images that `copies` and `mounts` in the metadata name; they can't be removed either. */
  otherImages?: readonly string[];
  /**
   * Does the work, in the operation's own `directory`. The function that it returns is called in the transaction that ends the
   * operation, so that its results and its success are recorded together.
   */
  perform: (run: OperationRun) => Promise<() => SuccessfulOutcome>;
}

export interface OperationRun {
  uuid: string;
  directory: string;
  /** Aborted when the operation is cancelled. */
  signal: AbortSignal;
  /**
   * Writes the start event, once the runtime is known. Only events about fetched layers come before it. Further calls have no effect.
   */
  begin(runtime: ContainerRuntime["name"]): void;
}

/** Records an operation and starts it; returns its UUID at once. */
export function startOperation(state: EngineState, work: OperationWork): string {
  const { database, clock } = state;
  const { perform: _, hasCommand: __, otherImages = [], ...record } = work;
  const uuid = crypto.randomUUID();
  inTransaction(database, () => {
    if (work.startImage !== undefined) requireImageRecord(database, work.startImage);
    for (const image of otherImages) requireImageRecord(database, image);
    addOperation(database, { ...record, uuid, owner: state.layout.owner, createdAt: clock.now() });
  });
  const cancellation = new AbortController();
  const cancel = () => cancellation.abort();
  const end = new AbortController();
  const ended = run(state, work, uuid, cancellation.signal).finally(() => {
    end.abort();
    state.running.delete(uuid);
  });
  state.running.set(uuid, { cancel, ended });
  void awaitCancelRequest(state, uuid, end.signal, cancel);
  return uuid;
}

/** Never rejects: an error becomes the operation's outcome. */
async function run(
  state: EngineState,
  work: OperationWork,
  uuid: string,
  signal: AbortSignal,
): Promise<void> {
  const { database, layout, clock } = state;
  const directory = join(layout.operations, uuid);
  const removeDirectory = () => rm(directory, { recursive: true, force: true }).catch(() => {});
  const startedAt = clock.now();
  let hasBegun = false;
  const begin = (runtime: ContainerRuntime["name"] | "none") => {
    if (hasBegun) return;
    hasBegun = true;
    const start = describeStart(startedAt, runtime, work.metadata.hostname);
    state.events.append(uuid, sandboxSpid, "init", start);
  };
  let outcome: RecordedOutcome;
  try {
    mkdirSync(directory, { mode: 0o700 });
    if (work.hasCommand === true) state.events.create(uuid);
    else begin("none");
    const finish = await work.perform({ uuid, directory, signal, begin });
    state.layerSync.recordFailures();
    outcome = inTransaction(database, () => {
      const result: RecordedOutcome = wasCancelled(state, uuid, signal) ? cancelled : finish();
      // A result that existed before is that of a command that changed nothing: it is on the disk.
      if (
        result.status === "SUCCESS" &&
        result.image !== undefined &&
        hasFailedSync(database, uuid) &&
        findImage(state, result.image) === undefined
      )
        requireNoFailedSync(database, uuid);
      finishOperation(database, uuid, result, clock.now());
      return result;
    });
  } catch (error) {
    // The directory goes first, since its contents may have filled the disk.
    await removeDirectory();
    await removeOrphanedLayers(state).catch(() => {});
    const failure: FailedOutcome = wasCancelled(state, uuid, signal)
      ? cancelled
      : failureOf(findDiskError(error, layout), layout);
    recordFailure(state, uuid, failure);
    outcome = failure;
  }
  attempt(() => {
    begin("none");
    appendShutdownEvent(state, uuid, outcome.status);
  });
  state.events.complete(uuid, describeCompletion(outcome, clock.now() - startedAt));
  await removeDirectory();
}

function failureOf(fault: unknown, layout: Layout): FailedOutcome {
  const isFull = isDiskFull(fault) || causeOf(fault, NoRoomError) !== undefined;
  return { status: "FAILED", error: describeFault(fault, layout), isDiskFull: isFull };
}

const cancelled: FailedOutcome = { status: "CANCELLED", error: null };

/** Returns the data of the start event: only what a command in the sandbox can see of its machine anyway, no path or process ID of it. */
function describeStart(startedAt: number, runtime: string, hostname: unknown): Record<string, unknown> {
  return {
    started_at: new Date(startedAt).toISOString(),
    runtime_path: runtime,
    verbose: false,
    // The process ID inside the sandbox.
    init_pid: 1,
    ...(typeof hostname === "string" ? { hostname } : {}),
    kernel: release(),
    machine: machine(),
  };
}

function appendShutdownEvent(state: EngineState, uuid: string, status: RecordedOutcome["status"]): void {
  const stoppedAt = new Date(state.clock.now()).toISOString();
  state.events.append(uuid, sandboxSpid, "shutdown", {
    stopped_at: stoppedAt,
    reason: shutdownReasons[status],
  });
}

/** Ignores errors: no event can be written to a full disk. */
function attempt(write: () => void): void {
  try {
    write();
  } catch {
    // The operation's record has its outcome.
  }
}

const shutdownReasons = { SUCCESS: "completed", FAILED: "failed", CANCELLED: "cancelled" } as const;

/** Returns true if this process has cancelled the operation, or another one has, with a flag in the database and a kill. */
function wasCancelled(state: EngineState, uuid: string, signal: AbortSignal): boolean {
  return signal.aborted || findOperation(state.database, uuid)?.cancelRequested === true;
}

/** Records a failure. If even that can't be written, this process keeps the outcome in memory. */
function recordFailure(state: EngineState, uuid: string, failure: FailedOutcome): void {
  try {
    finishOperation(state.database, uuid, failure, state.clock.now());
  } catch {
    state.unrecorded.set(uuid, failure);
  }
}

/** Ends an operation that this process runs, or asks the process that does: see `awaitCancelRequest`. */
export function cancelOperation(state: EngineState, operation: Operation): void {
  requestCancel(state.database, operation.uuid);
  const own = state.running.get(operation.uuid);
  if (own !== undefined) own.cancel();
  // This ends it at once, unless its process is in another PID namespace.
  else stopHelper(join(state.layout.operations, operation.uuid));
}

/** The time between two reads of an operation's record. */
const pollMilliseconds = 500;

/** Calls `cancel` once another process has asked for the end of an operation that this one runs, until `ended` is aborted. */
async function awaitCancelRequest(
  { database, clock }: Pick<EngineState, "database" | "clock">,
  uuid: string,
  ended: AbortSignal,
  cancel: () => void,
): Promise<void> {
  try {
    do await clock.sleep(pollMilliseconds, ended);
    while (findOperation(database, uuid)?.cancelRequested === false);
    cancel();
  } catch {
    // The operation has ended, or its record can't be read.
  }
}
