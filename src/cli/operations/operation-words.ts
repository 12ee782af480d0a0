import type { OperationSummary } from "../../service/operations/operation-records.ts";

/** Kinds of operations, as bough calls them. */
export const kindNames = ["run", "import"] as const;

export function kindOf({ kind }: OperationSummary): string {
  const names: Readonly<Record<string, string>> = { instance: "run", image_import: "import" };
  return names[kind] ?? kind;
}

/** The service's word for how it stands, but for a command that was run to an end that is none: its status is SUCCESS. */
export function statusOf({ status, timedOut, exitCode }: OperationSummary): string {
  if (timedOut) return "TIMED OUT";
  return exitCode === null || exitCode === 0 ? status : `EXIT ${exitCode}`;
}
