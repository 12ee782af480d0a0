import type { Dockerfile, Stage } from "../../dockerfile/instruction.ts";
import { type Finding, warn } from "../finding.ts";

/** Names that mean something other than a stage in a FROM or a COPY --from. */
const reservedNames = ["scratch", "context"];

/** DuplicateStageName, ReservedStageName. */
export function lintStageNames(_: Dockerfile, stages: readonly Stage[]): Finding[] {
  const seen = new Set<string>();
  return stages.flatMap(({ from }) => {
    const { stageName } = from;
    if (stageName === undefined) return [];
    const findings: Finding[] = [];
    if (reservedNames.includes(stageName)) {
      const message = `Stage name should not use the same name as reserved stage "${stageName}"`;
      findings.push(warn("ReservedStageName", message, from));
    }
    if (seen.has(stageName)) {
      const message = `Duplicate stage name "${stageName}", stage names should be unique`;
      findings.push(warn("DuplicateStageName", message, from));
    }
    seen.add(stageName);
    return findings;
  });
}
