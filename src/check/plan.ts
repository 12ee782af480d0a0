import { declareArguments } from "../builder/interpreter/settings.ts";
import { startBuild } from "../builder/interpreter/state.ts";
import { createReasons } from "../builder/interpreter/warnings.ts";
import { localFileSystem } from "../context/file-system/local-file-system.ts";
import { rememberFiles } from "../context/file-system/remembered-files.ts";
import type { Dockerfile, Instruction } from "../dockerfile/instruction.ts";
import { BoughError } from "../errors.ts";
import { createPace } from "../pace.ts";
import { type Finding, warn } from "./finding.ts";
import { SourceError } from "./plan-copy.ts";
import { planFrom } from "./plan-from.ts";
import { planInStage } from "./plan-stage.ts";
import {
  endStage,
  type Plan,
  type PlanJob,
  type PlanOptions,
  type PlanState,
  startStage,
} from "./plan-state.ts";
import type { ErrorRule } from "./rules.ts";

/** Goes through a Dockerfile as a build does, without a service; what is wrong is noted, and it goes on. */
export async function planBuild(dockerfile: Dockerfile, options: PlanOptions): Promise<Plan> {
  const plan: Plan = { files: [], warnings: [], errors: [] };
  const job: PlanJob = {
    ...options,
    escape: dockerfile.escape,
    files: rememberFiles(localFileSystem),
    plan,
    explain: createReasons(),
    warn: (rule, message, instruction) => plan.warnings.push(warn(rule, message, instruction)),
  };
  const { globals } = startBuild(options.platform?.platform, options.buildArgs);
  let state: PlanState = { globals, stages: new Map(), stage: undefined };
  const pace = createPace(options.signal);
  for (const instruction of dockerfile.instructions) {
    const pause = pace.step();
    if (pause !== undefined) await pause;
    // A FROM that fails starts a stage all the same: what follows is none of the one before.
    if (instruction.name === "FROM") state = { ...endStage(state), stage: startStage(instruction) };
    try {
      state = await planInstruction(instruction, state, job);
    } catch (error) {
      if (!(error instanceof BoughError) || error.kind === "interrupted") throw error;
      plan.errors.push(findingOf(error, instruction));
    }
  }
  return plan;
}

async function planInstruction(instruction: Instruction, state: PlanState, job: PlanJob): Promise<PlanState> {
  if (instruction.name === "FROM") return { ...state, stage: planFrom(instruction, state, job) };
  const { stage, globals } = state;
  if (stage !== undefined) return { ...state, stage: await planInStage(instruction, stage, globals, job) };
  if (instruction.name !== "ARG") return state;
  const declared = { args: globals, env: new Map<string, string>(), inherited: undefined, globals };
  return { ...state, globals: declareArguments(instruction, declared, job.buildArgs, job.escape) };
}

function findingOf(error: BoughError, { range }: Instruction): Finding {
  const rule: ErrorRule = error instanceof SourceError ? "InvalidSource" : "InvalidInstruction";
  return { rule, message: error.message, range, ...(error.hint === undefined ? {} : { hint: error.hint }) };
}
