import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { machine, release } from "node:os";
import { join } from "node:path";
import { inTransaction } from "../database.ts";
import { currentProcess } from "../process-identity.ts";
import type { OperationKind } from "../service/wire/operation.ts";
import { describeFault } from "./faults.ts";
import { sandboxSpid } from "./records/event-files.ts";
import { requireImage } from "./records/images.ts";
import {
  addOperation,
  describeCompletion,
  findOperation,
  finishOperation,
  type Outcome,
} from "./records/operations.ts";
import { removeOrphanedLayers } from "./records/orphaned-layers.ts";
import type { Runtime } from "./sandbox/runtime/runtime.ts";
import type { EngineState } from "./state.ts";

interface OperationWork {
  kind: OperationKind;
  metadata: Record<string, unknown>;
  /** It runs a command, and says by what; see `begin`. */
  hasCommand?: boolean;
  /** An image that is kept from now until the operation's end. */
  startImage?: string;
  /** Images that `copies` and `mounts` in the metadata name: they are kept as long. */
  otherImages?: readonly string[];
  /**
   * Does the work in `directory`, its own. What it returns is called in the transaction that ends the operation, so that
   * what the operation made and its success become true together.
   */
  perform: (run: OperationRun) => Promise<() => Outcome>;
}

export interface OperationRun {
  uuid: string;
  directory: string;
  /** Aborted when the operation is to end before its time. */
  signal: AbortSignal;
  /** Writes the event of the beginning, which is the first, once it is known what runs the command. The first call counts. */
  begin(runtime: Runtime["kind"]): void;
}

/** Records an operation and starts it; returns its UUID at once. */
export function startOperation(state: EngineState, work: OperationWork): string {
  const { database, clock } = state;
  const { perform: _, hasCommand: __, otherImages = [], ...record } = work;
  const uuid = crypto.randomUUID();
  inTransaction(database, () => {
    if (work.startImage !== undefined) requireImage(state, work.startImage);
    for (const image of otherImages) requireImage(state, image);
    addOperation(database, { ...record, uuid, owner: currentProcess(), createdAt: clock.now() });
  });
  const cancellation = new AbortController();
  const ended = run(state, work, uuid, cancellation.signal).finally(() => state.running.delete(uuid));
  state.running.set(uuid, { cancel: () => cancellation.abort(), ended });
  return uuid;
}

/** Never rejects: what goes wrong is the operation's outcome. */
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
  const begin = (runtime: Runtime["kind"] | "none") => {
    if (hasBegun) return;
    hasBegun = true;
    const start = describeStart(startedAt, runtime, work.metadata.hostname);
    state.events.append(uuid, sandboxSpid, "init", start);
  };
  let outcome: Outcome;
  try {
    mkdirSync(directory, { mode: 0o700 });
    if (work.hasCommand === true) state.events.create(uuid);
    else begin("none");
    const finish = await work.perform({ uuid, directory, signal, begin });
    outcome = inTransaction(database, () => {
      const result: Outcome = wasCancelled(state, uuid, signal) ? cancelled : finish();
      finishOperation(database, uuid, result, clock.now());
      return result;
    });
  } catch (error) {
    // First of all, since the disk may be full of what is in there.
    await removeDirectory();
    await removeOrphanedLayers(database, layout).catch(() => {});
    outcome = wasCancelled(state, uuid, signal)
      ? cancelled
      : { status: "FAILED", error: describeFault(error, layout.directory) };
    recordFailure(state, uuid, outcome);
  }
  attempt(() => {
    begin("none");
    tellOfShutdown(state, uuid, outcome.status);
  });
  state.events.complete(uuid, describeCompletion(outcome, clock.now() - startedAt));
  await removeDirectory();
}

const cancelled: Outcome = { status: "CANCELLED", error: null };

/** What a command in a sandbox sees of the machine that it is on, and nothing more: no path, no number of a process. */
function describeStart(startedAt: number, runtime: string, hostname: unknown): Record<string, unknown> {
  return {
    started_at: new Date(startedAt).toISOString(),
    runtime_path: runtime,
    verbose: false,
    // The sandbox counts its processes so.
    init_pid: 1,
    ...(typeof hostname === "string" ? { hostname } : {}),
    kernel: release(),
    machine: machine(),
  };
}

function tellOfShutdown(state: EngineState, uuid: string, status: Outcome["status"]): void {
  const stoppedAt = new Date(state.clock.now()).toISOString();
  state.events.append(uuid, sandboxSpid, "shutdown", {
    stopped_at: stoppedAt,
    reason: shutdownReasons[status],
  });
}

/** A full disk takes no events, as with the completion. */
function attempt(write: () => void): void {
  try {
    write();
  } catch {
    // How the operation has ended is in its record.
  }
}

const shutdownReasons = { SUCCESS: "completed", FAILED: "failed", CANCELLED: "cancelled" } as const;

/** Another process cancels by a mark in the database and a kill. */
function wasCancelled(state: EngineState, uuid: string, signal: AbortSignal): boolean {
  return signal.aborted || findOperation(state.database, uuid)?.cancelRequested === true;
}

/** Records a failure. This process at least knows the outcome where not even that can be written. */
function recordFailure(state: EngineState, uuid: string, outcome: Outcome): void {
  try {
    finishOperation(state.database, uuid, outcome, state.clock.now());
  } catch {
    state.unrecorded.set(uuid, outcome);
  }
}
