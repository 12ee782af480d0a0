import { join } from "node:path";
import { findOperation, type Operation, requestCancel } from "./records/operations.ts";
import type { EngineState } from "./state.ts";
import { stopHelper } from "./system/helper-process.ts";

/** Ends an operation that this process runs, or asks the process that does: see `awaitCancelRequest`. */
export function cancelOperation(state: EngineState, operation: Operation): void {
  requestCancel(state.database, operation.uuid);
  const own = state.running.get(operation.uuid);
  if (own !== undefined) own.cancel();
  // At once, unless that process is in another PID namespace.
  else stopHelper(join(state.layout.operations, operation.uuid));
}

/** Milliseconds between two looks at the record of an operation. */
const interval = 500;

/** Calls `cancel` once another process has asked for the end of an operation that this one runs, until `ended` is aborted. */
export async function awaitCancelRequest(
  { database, clock }: Pick<EngineState, "database" | "clock">,
  uuid: string,
  ended: AbortSignal,
  cancel: () => void,
): Promise<void> {
  try {
    do await clock.sleep(interval, ended);
    while (findOperation(database, uuid)?.cancelRequested === false);
    cancel();
  } catch {
    // The operation has ended, or its record can't be read.
  }
}
