import type { Dockerfile, Instruction, Stage } from "../../dockerfile/instruction.ts";
import { type Finding, warn } from "../finding.ts";

/** JSONArgsRecommended, MaintainerDeprecated, MultipleInstructionsDisallowed. */
export function lintCommands(_: Dockerfile, stages: readonly Stage[]): Finding[] {
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

const counts: ReadonlySet<string> = new Set(["CMD", "ENTRYPOINT", "HEALTHCHECK"]);

/** Reports the instructions that have no effect, as Docker does, not the last one. */
function overruled({ instructions }: Stage): Finding[] {
  const last = new Map<string, Instruction>();
  return instructions.flatMap((instruction) => {
    const { name } = instruction;
    if (!counts.has(name)) return [];
    const previous = last.get(name);
    last.set(name, instruction);
    if (previous === undefined) return [];
    const message = `Multiple ${name} instructions should not be used in the same stage because only the last one will be used`;
    return [warn("MultipleInstructionsDisallowed", message, previous)];
  });
}
