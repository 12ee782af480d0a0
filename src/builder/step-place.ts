import type { Dockerfile, Instruction } from "../dockerfile/instruction.ts";

/** A FROM and what follows. */
export interface StageLabel {
  /** 0 for the first. */
  index: number;
  /** The name behind `AS`, in lower case. */
  name: string | null;
}

/** An instruction's place. Steps of several stages may be at work at once. */
export interface StepPlace {
  /** `null` before the first FROM. */
  stage: StageLabel | null;
  /** The instruction's place in the Dockerfile, from 1: the n of `[n/m]`. */
  step: number;
}

export interface Step extends StepPlace {
  instruction: Instruction;
}

/** All of a Dockerfile, in their order. */
export function stepsOf({ instructions, stages }: Dockerfile): Step[] {
  const labels = new Map(stages.map(({ from, index, name }) => [from, { index, name: name ?? null }]));
  let stage: StageLabel | null = null;
  return instructions.map((instruction, index) => {
    if (instruction.name === "FROM") stage = labels.get(instruction) ?? stage;
    return { stage, step: index + 1, instruction };
  });
}

/** The place of the instruction on each line that has one. */
export function placesByLine(dockerfile: Dockerfile): ReadonlyMap<number, StepPlace> {
  const places = new Map<number, StepPlace>();
  for (const { stage, step, instruction } of stepsOf(dockerfile))
    for (let line = instruction.range.start; line <= instruction.range.end; line++)
      places.set(line, { stage, step });
  return places;
}
