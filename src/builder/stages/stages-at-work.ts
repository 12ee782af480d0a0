import type { Instruction } from "../../dockerfile/instruction.ts";
import type { RunningBuild, StageResults } from "../job.ts";
import type { StepRecord } from "../result.ts";
import type { Platform } from "../state/platform.ts";
import type { Arguments } from "../state/scope.ts";
import type { Step } from "../step-place.ts";
import type { Ordinals } from "./ordinals.ts";
import type { StageFeed } from "./stage-feed.ts";

/** The common parts of a build's stages. */
export interface StagesAtWork {
  running: RunningBuild;
  platform: Platform | undefined;
  globals: Arguments;
  steps: readonly Step[];
  /** The steps of one stage. */
  stepsOf(index: number): readonly Step[];
  ordinals: Ordinals;
  /** Indexes of the stages of `--no-cache-filter`. */
  uncached: ReadonlySet<number>;
  records: StepRecord[];
  results: StageResults;
  /** Resolves when the other stages have finished what the instruction takes from them. */
  waitFor(instruction: Instruction): Promise<unknown>;
  /** Indexes of the stages that the instruction takes something from. */
  needsOf(instruction: Instruction): readonly number[];
  takeSlot(): Promise<() => void>;
  feedOf(index: number): StageFeed;
  /** Returns true if several stages run in this build. */
  areMany(): boolean;
}
