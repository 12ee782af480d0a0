import { endStage, interpret, startInterpretation } from "../builder/interpreter/interpret.ts";
import type { Dockerfile, Instruction } from "../dockerfile/instruction.ts";
import { BoughError } from "../errors.ts";
import { createPace } from "../pace.ts";
import {
  createDryWorld,
  type DryOptions,
  type DryStage,
  type Notes,
  startDryStage,
  UncopyableSourceError,
} from "./dry-world.ts";
import type { Finding } from "./finding.ts";
import type { ErrorRule } from "./rules.ts";

/** What the build would find on its way through the Dockerfile. */
export interface Plan extends Notes {
  errors: Finding[];
}

/** Goes through a Dockerfile as a build does, without a service; what is wrong is noted, and it goes on. */
export async function planBuild(dockerfile: Dockerfile, options: DryOptions): Promise<Plan> {
  const plan: Plan = { files: [], warnings: [], errors: [] };
  const world = createDryWorld(options, dockerfile.escape, plan);
  let state = startInterpretation<DryStage>(options.platform?.platform, options.buildArgs);
  const pace = createPace(options.signal);
  for (const instruction of dockerfile.instructions) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    try {
      state = await interpret(instruction, state, world);
    } catch (error) {
      if (!(error instanceof BoughError) || error.kind === "interrupted") throw error;
      plan.errors.push(findingOf(error, instruction));
      // A FROM that fails starts a stage all the same: what follows is none of the one before.
      if (instruction.name === "FROM")
        state = { ...endStage(state), stage: { ...startDryStage(), name: instruction.stageName } };
    }
  }
  return plan;
}

function findingOf(error: BoughError, { range }: Instruction): Finding {
  const rule: ErrorRule = error instanceof UncopyableSourceError ? "InvalidSource" : "InvalidInstruction";
  return { rule, message: error.message, range, ...(error.hint === undefined ? {} : { hint: error.hint }) };
}
