import { staticGlobals } from "../builder/graph/stage-references.ts";
import { type Arguments, variableLookup } from "../builder/state/scope.ts";
import type { Dockerfile, FromInstruction, Instruction, Stage } from "../dockerfile/instruction.ts";
import { argumentWords } from "../dockerfile/instruction-words.ts";
import { isSecretName } from "../dockerfile/secrets.ts";
import { referencesIn } from "../dockerfile/words/references.ts";
import { expandWord } from "../dockerfile/words/words.ts";
import { BoughError } from "../errors.ts";
import { parsePlatform } from "../image/platform.ts";
import { parseReference } from "../service/images/reference.ts";
import { nearest } from "../suggest.ts";
import { type Finding, warn } from "./rules.ts";

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
        findings.push(warn("ExposeProtoCasing", message, instruction, port));
      }
      if (withoutVariables(port).includes(":")) {
        const message = `EXPOSE instruction should not define an IP address or host-port mapping, found '${port}'`;
        findings.push(warn("ExposeInvalidFormat", message, instruction, port));
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
        return warn("SecretsUsedInArgOrEnv", message, instruction, key);
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

/** ConsistentInstructionCasing, FromAsCasing, StageNameCasing. */
function lintCasing({ escape: escapeCharacter }: Dockerfile, stages: readonly Stage[]): Finding[] {
  // An ARG before the first FROM does not count.
  const instructions = stages.flatMap((stage) => [stage.from, ...stage.instructions]);
  return [
    ...instructionCasing(instructions),
    ...stages.flatMap(({ from }) => fromCasing(from, argumentWords(from, escapeCharacter))),
  ];
}

function instructionCasing(instructions: readonly Instruction[]): Finding[] {
  const names = instructions.map(writtenName);
  const lower = names.filter(isLower).length;
  const isMajorityLower = lower > names.filter(isUpper).length;
  const casing = isMajorityLower ? "lowercase" : "uppercase";
  return instructions.flatMap((instruction, index) => {
    const name = names[index] ?? "";
    if (isMajorityLower ? isLower(name) : isUpper(name)) return [];
    const message = `Command '${name}' should match the case of the command majority (${casing})`;
    return [warn("ConsistentInstructionCasing", message, instruction)];
  });
}

function fromCasing(from: Instruction, [, keyword, stage]: readonly string[]): Finding[] {
  return [...keywordCasing(from, keyword), ...stageNameCasing(from, stage)];
}

function keywordCasing(from: Instruction, keyword: string | undefined): Finding[] {
  const name = writtenName(from);
  // ConsistentInstructionCasing already reports a name of mixed casing.
  const isConsistent = isLower(name) ? isLower : isUpper(name) ? isUpper : () => true;
  if (keyword === undefined || isConsistent(keyword)) return [];
  return [warn("FromAsCasing", `'${keyword}' and '${name}' keywords' casing do not match`, from)];
}

function stageNameCasing(from: Instruction, stage: string | undefined): Finding[] {
  if (stage === undefined || isLower(stage)) return [];
  return [warn("StageNameCasing", `Stage name '${stage}' should be lowercase`, from)];
}

function writtenName({ original }: Instruction): string {
  return /^[^\t\v\f\r ]+/.exec(original)?.[0] ?? "";
}

function isLower(text: string): boolean {
  return text === text.toLowerCase();
}

function isUpper(text: string): boolean {
  return text === text.toUpperCase();
}

/** JSONArgsRecommended, MaintainerDeprecated, MultipleInstructionsDisallowed. */
function lintCommands(_: Dockerfile, stages: readonly Stage[]): Finding[] {
  return stages.flatMap((stage) => [...startCommandForms(stage), ...maintainers(stage), ...overruled(stage)]);
}

function startCommandForms({ instructions }: Stage): Finding[] {
  // A SHELL instruction shows that the shell form is intended.
  const shell = instructions.findIndex(({ name }) => name === "SHELL");
  return instructions.flatMap((instruction, index) => {
    if (instruction.name !== "CMD" && instruction.name !== "ENTRYPOINT") return [];
    // An empty command takes back that of the base image.
    if (instruction.command?.form !== "shell" || instruction.command.line === "") return [];
    if (shell >= 0 && shell < index) return [];
    const message = `JSON arguments recommended for ${instruction.name} to prevent unintended behavior related to OS signals`;
    return [warn("JSONArgsRecommended", message, instruction)];
  });
}

function maintainers({ instructions }: Stage): Finding[] {
  const message = "Maintainer instruction is deprecated in favor of using label";
  return instructions.flatMap((instruction) =>
    instruction.name === "MAINTAINER" ? [warn("MaintainerDeprecated", message, instruction)] : [],
  );
}

const singleInstructions: ReadonlySet<string> = new Set(["CMD", "ENTRYPOINT", "HEALTHCHECK"]);

/** Reports the instructions that a later one replaces, as Docker does. */
function overruled({ instructions }: Stage): Finding[] {
  const last = new Map<string, Instruction>();
  return instructions.flatMap((instruction) => {
    const { name } = instruction;
    if (!singleInstructions.has(name)) return [];
    const previous = last.get(name);
    last.set(name, instruction);
    if (previous === undefined) return [];
    const message = `Multiple ${name} instructions should not be used in the same stage because only the last one will be used`;
    return [warn("MultipleInstructionsDisallowed", message, previous)];
  });
}

/** FromPlatformFlagConstDisallowed, InvalidDefaultArgInFrom, RedundantTargetPlatform, UndefinedArgInFrom. */
function lintBaseImages(dockerfile: Dockerfile, stages: readonly Stage[]): Finding[] {
  // The platform makes no difference here.
  const defaults = staticGlobals(dockerfile, { buildArgs: new Map(), target: undefined });
  return stages.flatMap(({ from }) => [
    ...undeclared(from, defaults, dockerfile),
    ...invalidDefault(from, defaults, dockerfile),
    ...needlessPlatform(from),
  ]);
}

function undeclared(from: FromInstruction, declared: Arguments, { escape }: Dockerfile): Finding[] {
  const words = [from.image, from.platform ?? ""];
  const names = words.flatMap((word) => referencesIn(word, escape)).filter(({ isRequired }) => isRequired);
  return [...new Set(names.map(({ name }) => name))]
    .filter((name) => !declared.has(name))
    .map((name) => {
      const meant = nearest(name, declared.keys());
      const suggestion = meant === undefined ? "" : ` (did you mean ${meant}?)`;
      return warn("UndefinedArgInFrom", `FROM argument '${name}' is not declared${suggestion}`, from, name);
    });
}

function invalidDefault(from: FromInstruction, defaults: Arguments, { escape }: Dockerfile): Finding[] {
  if (!from.image.includes("$")) return [];
  const isValid = orElse(false, () => {
    parseReference(expandWord(from.image, variableLookup({ args: defaults }), escape));
    return true;
  });
  if (isValid) return [];
  const message = `Default value for ARG ${from.image} results in empty or invalid base image name`;
  return [warn("InvalidDefaultArgInFrom", message, from)];
}

function needlessPlatform(from: FromInstruction): Finding[] {
  const { platform, stageName = "" } = from;
  if (platform === undefined) return [];
  // A default (`:-`) makes no difference: the variable is always set.
  if (/^\$(TARGETPLATFORM|\{TARGETPLATFORM(:?-[^}]*)?\})$/.test(platform)) {
    const message = `Setting platform to predefined ${platform} in FROM is redundant as this is the default behavior`;
    return [warn("RedundantTargetPlatform", message, from)];
  }
  const constant = platform.includes("$") ? undefined : orElse(undefined, () => parsePlatform(platform));
  // A stage that is named after its platform is meant for that platform.
  if (constant === undefined) return [];
  if (stageName.includes(constant.os) || stageName.includes(constant.architecture)) return [];
  const message = `FROM --platform flag should not use constant value "${platform}"`;
  return [warn("FromPlatformFlagConstDisallowed", message, from)];
}

/** Returns `otherwise` if the action throws a BoughError: the plan reports invalid words. */
function orElse<Result>(otherwise: Result, action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    if (error instanceof BoughError) return otherwise;
    throw error;
  }
}
