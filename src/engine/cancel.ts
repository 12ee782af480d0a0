import { join } from "node:path";
import { type Operation, requestCancel } from "./records/operations.ts";
import type { EngineState } from "./state.ts";
import { stopHelper } from "./system/helper-process.ts";

/** Ends an operation that this process runs, or asks the process that does. */
export function cancelOperation(state: EngineState, operation: Operation): void {
  requestCancel(state.database, operation.uuid);
  const own = state.running.get(operation.uuid);
  if (own !== undefined) own.cancel();
  else stopHelper(join(state.layout.operations, operation.uuid));
}
