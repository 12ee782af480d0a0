import type {
  AddInstruction,
  CopyInstruction,
  FromInstruction,
  Instruction,
  RunInstruction,
  WorkdirInstruction,
} from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import type { Lookup } from "../../dockerfile/words/words.ts";
import type { CopyPlan, PlanOptions, planCopy } from "../copy/plan.ts";
import type { CopyWords } from "../copy/words.ts";
import type { BuildMode } from "../job.ts";
import type { Arguments, StageScope } from "./scope.ts";
import type { ReasonedWarning } from "./warnings.ts";

/** What a COPY or ADD comes to: its words, and what it puts where. */
export interface PlannedCopy {
  words: CopyWords;
  plan: CopyPlan;
  /** False: the destination depends on what only the image could tell. */
  isPlaceKnown: boolean;
  /** What is in the image had a say in where it all goes. */
  isImageAsked: boolean;
}

export type CopyOptions = Omit<PlanOptions, "mode" | "lookup" | "escape" | "workdir"> & {
  workdir: string | undefined;
};

/**
 * What the interpreter meets: the live world asks the service and makes layers, the dry one of `--check` knows nothing of an
 * image and notes what a build would do.
 */
export interface World<Stage extends StageScope> {
  readonly mode: BuildMode;
  readonly escape: EscapeCharacter;
  readonly buildArgs: ReadonlyMap<string, string>;
  /** Variables that every image is taken to have where it is not asked. */
  readonly assumed: ReadonlyMap<string, string> | undefined;
  warn(warning: { rule?: string; message: string }, instruction: Instruction): void;
  /** Warns with a reason, which is said once. */
  warnWithReason(warning: ReasonedWarning, instruction: Instruction): void;
  /** Returns whether undefined variables in such an instruction are warned about. */
  tellsUndefined(instruction: Instruction): boolean;

  requirePlatform(from: FromInstruction, globals: Arguments): void;
  /** The stage that a FROM names, at its end; `undefined` where it names none. */
  startFromStage(from: FromInstruction): Promise<Stage | undefined>;
  /** The ONBUILD instructions of that stage. */
  triggersOf(from: FromInstruction): readonly Instruction[];
  /** Returns whether a `--from` of an image's trigger would mean a stage of this Dockerfile. */
  namesStage(word: string): boolean;
  startFromImage(reference: string, from: FromInstruction): Promise<Stage>;
  /** Learns what an instruction needs of the image's own variables. */
  loadImageEnv(instruction: Instruction, stage: Stage): Promise<Stage>;
  /** Keeps what is about to be done for the image's history. */
  noteStep(instruction: Instruction, stage: Stage, lookup: Lookup): Stage;
  /** `path`: variables replaced; `undefined`: only the image could tell. */
  changeWorkdir(instruction: WorkdirInstruction, path: string | undefined, stage: Stage): Promise<Stage>;
  changeUser(user: string | undefined, stage: Stage): Stage;
  /** What sources and destination are looked for with. `workdir`: `undefined` where only the image could tell. */
  copyOptions(instruction: CopyInstruction | AddInstruction, stage: Stage): Promise<CopyOptions>;
  planCopy: typeof planCopy;
  copyFromImage(instruction: CopyInstruction, words: CopyWords, stage: Stage): Promise<Stage>;
  copy(instruction: CopyInstruction | AddInstruction, copy: PlannedCopy, stage: Stage): Promise<Stage>;
  run(instruction: RunInstruction, stage: Stage): Promise<Stage>;
}
