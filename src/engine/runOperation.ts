import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { OperationKind } from "../service/types.ts";
import { inTransaction } from "./database.ts";
import { sandbox } from "./eventLog.ts";
import { describeFault } from "./faults.ts";
import { addOperation, findOperation, finishOperation, type Outcome, setStatus } from "./operations.ts";
import { currentProcess } from "./processes.ts";
import type { EngineState } from "./state.ts";

export interface OperationWork {
  kind: OperationKind;
  metadata: Record<string, unknown>;
  startImage?: string;
  /**
   * Does the work in `directory`, its own. What it answers is called in the transaction that ends the operation, so that
   * what the operation made and its success become true together.
   */
  perform: (run: OperationRun) => Promise<() => Outcome>;
}

export interface OperationRun {
  uuid: string;
  directory: string;
  /** Aborted when the operation is to end before its time. */
  signal: AbortSignal;
}

/** Records an operation and starts it; answers its UUID at once. */
export function startOperation(state: EngineState, work: OperationWork): string {
  const uuid = crypto.randomUUID();
  const { kind, metadata, startImage } = work;
  addOperation(state.database, {
    uuid,
    kind,
    owner: currentProcess(),
    metadata,
    ...(startImage === undefined ? {} : { startImage }),
    createdAt: state.clock.now(),
  });
  const cancellation = new AbortController();
  const ended = run(state, work, uuid, cancellation.signal).finally(() => state.running.delete(uuid));
  state.running.set(uuid, { cancel: () => cancellation.abort(), ended });
  return uuid;
}

async function run(
  state: EngineState,
  work: OperationWork,
  uuid: string,
  signal: AbortSignal,
): Promise<void> {
  const { database, layout, clock } = state;
  const directory = join(layout.operations, uuid);
  let outcome: Outcome;
  try {
    mkdirSync(directory, { mode: 0o700 });
    state.events.append(uuid, sandbox, "init", {});
    setStatus(database, uuid, "EXECUTING");
    const finish = await work.perform({ uuid, directory, signal });
    outcome = inTransaction(database, () => {
      const result: Outcome = wasCancelled(state, uuid, signal) ? cancelled() : finish();
      finishOperation(database, uuid, result, clock.now());
      return result;
    });
  } catch (error) {
    outcome = wasCancelled(state, uuid, signal)
      ? cancelled()
      : { status: "FAILED", error: describeFault(error, layout.directory) };
    finishOperation(database, uuid, outcome, clock.now());
  }
  await rm(directory, { recursive: true, force: true });
  state.events.append(uuid, sandbox, "completion", completionData(state, uuid, outcome));
  state.events.close(uuid);
}

/** Another process cancels by a mark in the database and a kill. */
function wasCancelled(state: EngineState, uuid: string, signal: AbortSignal): boolean {
  return signal.aborted || findOperation(state.database, uuid)?.cancelRequested === true;
}

function cancelled(): Outcome {
  return { status: "CANCELLED", error: null };
}

export function completionData(state: EngineState, uuid: string, outcome: Outcome): Record<string, unknown> {
  const createdAt = findOperation(state.database, uuid)?.createdAt ?? state.clock.now();
  return {
    status: outcome.status,
    error: outcome.error,
    duration_ms: state.clock.now() - createdAt,
    result_image_uuid: outcome.image ?? null,
  };
}
