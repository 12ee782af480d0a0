import type { Dockerfile, Instruction, Stage } from "../../dockerfile/instruction.ts";
import { argumentWords } from "../../dockerfile/instruction-words.ts";
import { type Finding, warn } from "../finding.ts";

/** ConsistentInstructionCasing, FromAsCasing, StageNameCasing. */
export function lintCasing({ escape: escapeCharacter }: Dockerfile, stages: readonly Stage[]): Finding[] {
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
