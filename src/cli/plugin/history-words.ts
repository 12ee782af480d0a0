/** What the commands of `docker buildx history` have in common. */
import { usageError } from "../../errors.ts";
import type { BuildSummary } from "../../history/history-database.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import { findBuilds } from "../history/find-build.ts";
import type { Runtime } from "../process/runtime.ts";

export const common: ArgumentDefinitions = {
  builder: { type: "string", description: "Taken, and makes no difference" },
  debug: { type: "boolean", alias: "D", description: "Enable debug logging" },
  help: { type: "boolean", alias: "h", description: "Print help and exit" },
};
export const reference: ArgumentDefinitions = {
  ref: { type: "positional", required: false, multiple: true },
};

export interface HistoryCall {
  /** `docker buildx history ls` */
  name: string;
  runtime: Runtime;
}

/** Returns the build that a reference names; the last one if it is not given. */
export function requireKnown(ref: string | undefined, builds: readonly BuildSummary[]): BuildSummary {
  const found = findKnown(ref, builds);
  if (found !== undefined) return found;
  throw usageError(ref === undefined ? "no records found" : `no record found for ref ${JSON.stringify(ref)}`);
}

/** Finds a build by its ID, `^1` or `default/default/ID`. */
export function findKnown(
  ref: string | undefined,
  builds: readonly BuildSummary[],
): BuildSummary | undefined {
  const found = findBuilds(ref?.replace(/^.*\//, ""), builds);
  if (found.length < 2) return found[0];
  const ids = found.slice(0, 5).map(({ id }) => id);
  throw usageError(
    `ref ${JSON.stringify(ref)} is ambiguous: ${found.length} records begin with it`,
    `Give more characters: ${ids.join(", ")}`,
  );
}
