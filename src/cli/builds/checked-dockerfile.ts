import { overrideStages } from "../../builder/graph/build-graph.ts";
import { neededPart, refuseBadStages } from "../../builder/graph/stage-references.ts";
import { refuseUnsupported } from "../../builder/interpreter/refusals.ts";
import { refuseBadMounts } from "../../builder/mounts/mount-support.ts";
import { type CheckDirective, readCheckDirective } from "../../check/check-directive.ts";
import type { CheckedLock } from "../../check/lints/references.ts";
import type { Finding } from "../../check/rules.ts";
import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { parseDockerfile } from "../../dockerfile/parse.ts";
import { DockerfileError } from "../../dockerfile/problems/problem.ts";
import type { BuildInputs } from "./inputs.ts";
import type { BuildInvocation } from "./request.ts";

interface CheckedDockerfile {
  dockerfile: Dockerfile;
  /** Its part that the target needs. */
  needed: Dockerfile;
  directive: CheckDirective;
  /** What `--check=warn` has found. */
  findings: readonly Finding[];
}

/** Parses the Dockerfile. Throws for what bough does not build, and for findings of Docker's checks if these are errors. */
export async function readCheckedDockerfile(
  inputs: BuildInputs,
  invocation: Pick<BuildInvocation, "options" | "runtime" | "globals">,
  lock?: CheckedLock,
): Promise<CheckedDockerfile> {
  const { dialect, buildArgs, target, contexts } = inputs;
  const parsed = parseDockerfile(inputs.dockerfile.text, inputs.dockerfile.path);
  const dockerfile = overrideStages(parsed, contexts);
  const stages = { dialect, buildArgs, target, contexts };
  refuseBadMounts(dockerfile, contexts);
  refuseBadStages(dockerfile, stages);
  const needed = neededPart(dockerfile, stages);
  refuseUnsupported(needed, inputs.network);
  // The comments of a replaced stage must not count for the next one.
  const directive = readCheckDirective(parsed, buildArgs);
  const { check: level } = invocation.options;
  if (!directive.turnsIntoErrors && typeof level !== "string")
    return { dockerfile, needed, directive, findings: [] };
  const { checkInputs } = await import("./check.ts");
  const { warnings } = await checkInputs(inputs, invocation, lock);
  if (directive.turnsIntoErrors || level === "error") await requireClean(dockerfile, warnings);
  return { dockerfile, needed, directive, findings: level === "warn" ? warnings : [] };
}

/** Rejects if one of Docker's checks fails, as `# check=error=true` and `--check=error` demand, before anything is run. */
async function requireClean(dockerfile: Dockerfile, warnings: readonly Finding[]): Promise<void> {
  const { isDockerRule } = await import("../../check/rules.ts");
  const problems = warnings.flatMap(({ rule, message, range }) =>
    isDockerRule(rule) && range !== undefined ? [{ message: `${message} (${rule})`, range }] : [],
  );
  if (problems.length > 0) throw new DockerfileError(dockerfile, problems);
}
