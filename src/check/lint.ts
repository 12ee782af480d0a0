import type { Dockerfile, Instruction, Stage } from "../dockerfile/instruction.ts";
import { isSecretName } from "../dockerfile/secrets.ts";
import { type Finding, warn } from "./finding.ts";
import { lintBaseImages } from "./lints/base-images.ts";
import { lintCasing } from "./lints/casing.ts";
import { lintCommands } from "./lints/commands.ts";

/** A family of lints that need nothing but the Dockerfile. */
type Lint = (dockerfile: Dockerfile, stages: readonly Stage[]) => Finding[];

const lints: readonly Lint[] = [
  lintBaseImages,
  lintCasing,
  lintCommands,
  lintDescriptions,
  lintExpose,
  lintSecrets,
  lintStageNames,
];

/** Returns the findings about a Dockerfile's text. The plan has those about the expanded words. */
export function lintDockerfile(dockerfile: Dockerfile): Finding[] {
  return [...dockerfile.warnings, ...lints.flatMap((lint) => lint(dockerfile, dockerfile.stages))];
}

/** InvalidDefinitionDescription: a comment right above an ARG or a named stage describes it, by its name. */
function lintDescriptions(dockerfile: Dockerfile): Finding[] {
  return dockerfile.instructions.flatMap((instruction) => {
    const names = namesOf(instruction);
    const comment = commentAbove(instruction, dockerfile);
    const [example] = names;
    if (example === undefined || comment === undefined) return [];
    if (names.includes(comment.split(" ", 1)[0] ?? "")) return [];
    const shown = names.length > 1 ? "<arg_key>" : example;
    const message = `Comment for ${instruction.name} should follow the format: \`# ${shown} <description>\``;
    return [warn("InvalidDefinitionDescription", message, instruction)];
  });
}

function namesOf(instruction: Instruction): string[] {
  if (instruction.name === "ARG") return instruction.declarations.map(({ key }) => key);
  return instruction.name === "FROM" && instruction.stageName !== undefined ? [instruction.stageName] : [];
}

function commentAbove({ range }: Instruction, { lines, directives }: Dockerfile): string | undefined {
  // Parser directives are the first lines. A line further down that looks like one is a comment.
  const isDirective = range.start - 1 <= directives.size;
  const line = lines[range.start - 2]?.trim() ?? "";
  return line.startsWith("#") && !isDirective ? line.slice(1).trim() : undefined;
}

/** ExposeProtoCasing, ExposeInvalidFormat. */
function lintExpose({ instructions }: Dockerfile): Finding[] {
  return instructions.flatMap((instruction) => {
    if (instruction.name !== "EXPOSE") return [];
    return instruction.ports.flatMap((port) => {
      const findings: Finding[] = [];
      const protocol = port.slice(port.indexOf("/") + 1);
      if (port.includes("/") && !protocol.includes("$") && protocol !== protocol.toLowerCase()) {
        const message = `Defined protocol '${port}' in EXPOSE instruction should be lowercase`;
        findings.push(warn("ExposeProtoCasing", message, instruction));
      }
      if (withoutVariables(port).includes(":")) {
        const message = `EXPOSE instruction should not define an IP address or host-port mapping, found '${port}'`;
        findings.push(warn("ExposeInvalidFormat", message, instruction));
      }
      return findings;
    });
  });
}

/** Removes variables: the colon of `${PORT:-80}` is not that of a mapping. */
function withoutVariables(port: string): string {
  return port.replace(/\$\{[^}]*\}/g, "");
}

/** SecretsUsedInArgOrEnv. */
function lintSecrets({ instructions }: Dockerfile): Finding[] {
  return instructions.flatMap((instruction) => {
    const pairs =
      instruction.name === "ARG"
        ? instruction.declarations
        : instruction.name === "ENV"
          ? instruction.pairs
          : [];
    return pairs
      .filter(({ key }) => isSecretName(key))
      .map(({ key }) => {
        const message = `Do not use ARG or ENV instructions for sensitive data (${instruction.name} "${key}")`;
        return warn("SecretsUsedInArgOrEnv", message, instruction);
      });
  });
}

/** Names that mean something other than a stage in a FROM or a COPY --from. */
const reservedNames = ["scratch", "context"];

/** DuplicateStageName, ReservedStageName. */
function lintStageNames(_: Dockerfile, stages: readonly Stage[]): Finding[] {
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
