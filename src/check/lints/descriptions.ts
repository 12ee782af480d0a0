import type { Dockerfile, Instruction } from "../../dockerfile/instruction.ts";
import { type Finding, warn } from "../finding.ts";

/** InvalidDefinitionDescription: a comment right above an ARG or a named stage describes it, by its name. */
export function lintDescriptions(dockerfile: Dockerfile): Finding[] {
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
