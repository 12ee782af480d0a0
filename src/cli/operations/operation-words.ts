import type { OperationSummary } from "../../service/operations/operation-records.ts";

/** Kinds of operations, as bough calls them. */
export const kindNames = ["run", "import"] as const;

export function kindOf({ kind }: OperationSummary): string {
  const names: Readonly<Record<string, string>> = { instance: "run", image_import: "import" };
  return names[kind] ?? kind;
}

/**
 * Returns the service's status. A command that ended with another exit code than 0 has the service's status SUCCESS, but is shown
 * as `EXIT <code>`. A cancelled command has an exit code as well on some services.
 */
export function statusOf({ status, timedOut, exitCode }: OperationSummary): string {
  if (timedOut) return "TIMED OUT";
  return exitCode === null || exitCode === 0 || status === "CANCELLED" ? status : `EXIT ${exitCode}`;
}
