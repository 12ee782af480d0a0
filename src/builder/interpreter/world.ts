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
import type { Platform } from "../../image/platform.ts";
import type { Message } from "../../messages/wording.ts";
import type { NamedContexts } from "../contexts/named-context.ts";
import type { PlannedCopy, PlanOptions, planCopy } from "../copy/plan.ts";
import type { CopyWords } from "../copy/words.ts";
import type { Dialect } from "../dialect.ts";
import type { Arguments, StageScope } from "../state/scope.ts";

type CopyOptions = Omit<PlanOptions, "dialect" | "lookup" | "escape" | "workdir"> & {
  workdir: string | undefined;
};

/**
 * The interpreter's surroundings. The live world asks the service and makes layers. The dry world of `--check` knows nothing of
 * an image and notes what a build would do.
 */
export interface World<Stage extends StageScope> {
  readonly dialect: Dialect;
  readonly escape: EscapeCharacter;
  readonly buildArgs: ReadonlyMap<string, string>;
  /** `--build-context`. */
  readonly contexts: NamedContexts;
  /** Variables that every image is assumed to have if it is not asked. */
  readonly assumed: ReadonlyMap<string, string> | undefined;
  warn(
    warning: { rule?: string; message: Message; subject?: string; skipped?: string },
    instruction: Instruction,
  ): void;
  /** Returns true if undefined variables in the instruction are worth a warning. */
  warnsAboutUndefined(instruction: Instruction): boolean;

  /** The platform of a FROM's image if it is not the service's own. Throws for one that the service can't have. */
  platformOf(from: FromInstruction, globals: Arguments): Platform | undefined;
  /** The final state of the stage that a FROM names; `undefined` if it names an image. */
  startFromStage(from: FromInstruction): Promise<Stage | undefined>;
  /** The ONBUILD instructions of that stage. */
  triggersOf(from: FromInstruction): readonly Instruction[];
  /** Finds the stages that a trigger names, before it runs. Throws if it names one that can't be used. */
  noteTrigger(trigger: Instruction, from: FromInstruction): void;
  startFromImage(reference: string, from: FromInstruction, platform: Platform | undefined): Promise<Stage>;
  /** Loads the image's own variables if the instruction needs them. */
  loadImageEnv(instruction: Instruction, stage: Stage): Promise<Stage>;
  /** Records an instruction for the image's history. */
  noteStep(instruction: Instruction, stage: Stage, lookup: Lookup, globals: Arguments): Stage;
  /** `path`: with variables replaced; `undefined` if only the image defines them. */
  changeWorkdir(instruction: WorkdirInstruction, path: string | undefined, stage: Stage): Promise<Stage>;
  changeUser(user: string | undefined, stage: Stage): Stage;
  /** Returns what finding sources and destination needs. `workdir`: `undefined` if only the image defines it. */
  copyOptions(instruction: CopyInstruction | AddInstruction, stage: Stage): Promise<CopyOptions>;
  planCopy: typeof planCopy;
  copyFromImage(instruction: CopyInstruction, words: CopyWords, stage: Stage): Promise<Stage>;
  copy(instruction: CopyInstruction | AddInstruction, copy: PlannedCopy, stage: Stage): Promise<Stage>;
  run(instruction: RunInstruction, stage: Stage): Promise<Stage>;
}
