import type { Dockerfile, Instruction } from "../dockerfile/instruction.ts";

/** A FROM with the instructions up to the next one. */
export interface Stage {
  from: Extract<Instruction, { name: "FROM" }>;
  instructions: readonly Instruction[];
}

export function stagesOf({ instructions }: Dockerfile): Stage[] {
  const stages: (Stage & { instructions: Instruction[] })[] = [];
  for (const instruction of instructions) {
    if (instruction.name === "FROM") stages.push({ from: instruction, instructions: [] });
    else stages.at(-1)?.instructions.push(instruction);
  }
  return stages;
}
