import { maskSecrets } from "../../dockerfile/mask.ts";
import type { OperationSummary } from "../../service/operations/operation-records.ts";

/** Masks secrets in an operation's command and error: services keep the command line as it was sent. */
export function withoutSecrets<Operation extends OperationSummary>(operation: Operation): Operation {
  const { command, error } = operation;
  return {
    ...operation,
    command: command === null ? null : maskSecrets(command),
    error: error === null ? null : maskSecrets(error),
  };
}
