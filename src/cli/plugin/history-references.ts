/** References to builds, as the commands of `docker buildx history` take them. */
import { usageError } from "../../errors.ts";
import type { BuildSummary } from "../../history/history-database.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import { findBuilds } from "../history/find-build.ts";

export const referenceArgument: ArgumentDefinitions = {
  ref: { type: "positional", required: false, multiple: true },
};

/** Returns the build that a reference names; without a reference, the last one. */
export function requireReferencedBuild(
  ref: string | undefined,
  builds: readonly BuildSummary[],
): BuildSummary {
  const found = findReferencedBuild(ref, builds);
  if (found !== undefined) return found;
  throw usageError(ref === undefined ? "no records found" : `no record found for ref ${JSON.stringify(ref)}`);
}

/** Finds a build by its ID, `^1` or `default/default/ID`. */
export function findReferencedBuild(
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
