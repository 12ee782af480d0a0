import type { Dockerfile, Instruction } from "../dockerfile/instruction.ts";

/** A stage: a FROM and the instructions after it. */
export interface StageLabel {
  /** 0 for the first. */
  index: number;
  /** The name after `AS`, in lower case. */
  name: string | null;
}

/** An instruction's place. Steps of several stages may run at once. */
export interface StepPlace {
  /** `null` before the first FROM. */
  stage: StageLabel | null;
  /** The instruction's number in the Dockerfile, from 1: the n of `[n/m]`. */
  step: number;
}

export interface PlacedInstruction extends StepPlace {
  instruction: Instruction;
}

/** Returns all instructions of a Dockerfile with their places, in order. */
export function stepsOf({ instructions, stages }: Dockerfile): PlacedInstruction[] {
  const labels = new Map(stages.map(({ from, index, name }) => [from, { index, name: name ?? null }]));
  let stage: StageLabel | null = null;
  return instructions.map((instruction, index) => {
    if (instruction.name === "FROM") stage = labels.get(instruction) ?? stage;
    return { stage, step: index + 1, instruction };
  });
}

/** Returns the place of the instruction on each line that has one. */
export function placesByLine(dockerfile: Dockerfile): ReadonlyMap<number, StepPlace> {
  const places = new Map<number, StepPlace>();
  for (const { stage, step, instruction } of stepsOf(dockerfile))
    for (let line = instruction.range.start; line <= instruction.range.end; line++)
      places.set(line, { stage, step });
  return places;
}
