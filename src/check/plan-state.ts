import type { Platform } from "../builder/interpreter/platform.ts";
import type { Arguments } from "../builder/interpreter/state.ts";
import type { createReasons } from "../builder/interpreter/warnings.ts";
import type { BuildContext } from "../context/build-context.ts";
import type { FileSystem } from "../context/file-system/file-system.ts";
import type { IgnoreRules } from "../context/patterns/ignore.ts";
import type { FromInstruction, Instruction } from "../dockerfile/instruction.ts";
import { extend } from "../persistent-map.ts";
import type { Finding } from "./finding.ts";
import type { PlannedFile } from "./planned-file.ts";
import type { WarningRule } from "./rules.ts";

export interface PlanOptions {
  context: BuildContext;
  ignore: IgnoreRules;
  buildArgs: ReadonlyMap<string, string>;
  /** `--allow-local-from`. */
  allowsLocalFrom: boolean;
  /** Of the service; `undefined` where no instruction depends on it. */
  platform: AssumedPlatform | undefined;
  signal: AbortSignal;
}

export interface AssumedPlatform {
  platform: Platform;
  /** False: the service might say otherwise, if it were asked. */
  isCertain: boolean;
}

/** What the build would find on its way through the Dockerfile. */
export interface Plan {
  files: PlannedFile[];
  warnings: Finding[];
  errors: Finding[];
}

export interface PlanJob extends PlanOptions {
  escape: "\\" | "`";
  /** What the context is read through. */
  files: FileSystem;
  /** Gives a reason with the first warning that has it. */
  explain: ReturnType<typeof createReasons>;
  /** Grows from instruction to instruction. */
  plan: Plan;
  warn(rule: WarningRule, message: string, instruction: Instruction): void;
}

export interface PlanState {
  /** Declared before the first FROM. */
  globals: Arguments;
  /** Finished ones by name. */
  stages: ReadonlyMap<string, PlannedStage>;
  stage: PlannedStage | undefined;
}

/** What the words of a stage depend on; there is no image in it. */
export interface PlannedStage {
  name: string | undefined;
  env: ReadonlyMap<string, string>;
  args: Arguments;
  /** `undefined`: it depends on a variable of the image. */
  workdir: string | undefined;
  /** Some WORKDIR has been there. */
  workdirIsSet: boolean;
  /** None of them was absolute: it counts from `/`, where the image may have a WORKDIR of its own. */
  workdirIsAssumed: boolean;
  staged: ReadonlyMap<string, { type: string }>;
  /** True of variables whose values depend on what the image sets; false of some that others depended on before. */
  unknown: ReadonlyMap<string, boolean>;
}

export function startStage({ stageName }: FromInstruction): PlannedStage {
  return {
    name: stageName,
    env: new Map(),
    args: new Map(),
    workdir: "/",
    workdirIsSet: false,
    workdirIsAssumed: true,
    staged: new Map(),
    unknown: new Map(),
  };
}

export function endStage(state: PlanState): PlanState {
  const { stage, stages } = state;
  if (stage?.name === undefined) return { ...state, stage: undefined };
  return { ...state, stages: extend(stages, [[stage.name, stage]]), stage: undefined };
}
