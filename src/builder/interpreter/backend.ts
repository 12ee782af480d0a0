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
 * Performs what the interpreter has understood of an instruction. A build's executor asks the service and makes layers
 * (`executor.ts`), the dry run of `--check` only records what a build would do (`check/dry-run.ts`), and the backend of content keys
 * adds each instruction to a hash (`keys/key-backend.ts`).
 */
export interface Backend<Stage extends StageScope> {
  readonly dialect: Dialect;
  readonly escape: EscapeCharacter;
  readonly buildArgs: ReadonlyMap<string, string>;
  /** `--build-context`. */
  readonly contexts: NamedContexts;
  /** The variables that an image is assumed to have before it is asked; `undefined`: none are assumed. */
  readonly assumedVariables: ReadonlyMap<string, string> | undefined;
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
  /** Links a trigger to the stages that it names, before it runs. Throws if it names one that can't be used. */
  linkTrigger(trigger: Instruction, from: FromInstruction): void;
  startFromImage(reference: string, from: FromInstruction, platform: Platform | undefined): Promise<Stage>;
  /** Loads the image's own variables if the instruction needs them. */
  loadImageEnv(instruction: Instruction, stage: Stage): Promise<Stage>;
  /** Returns the stage with an instruction's line in the image's history. */
  addToHistory(instruction: Instruction, stage: Stage, lookup: Lookup, globals: Arguments): Stage;
  /** `path`: with variables replaced; `undefined` if only the image defines them. */
  changeWorkdir(instruction: WorkdirInstruction, path: string | undefined, stage: Stage): Promise<Stage>;
  changeUser(user: string | undefined, stage: Stage): Stage;
  /** Returns what `planCopy` needs to find sources and destination. `workdir`: `undefined` if only the image defines it. */
  copyOptions(instruction: CopyInstruction | AddInstruction, stage: Stage): Promise<CopyOptions>;
  planCopy: typeof planCopy;
  copyFromImage(instruction: CopyInstruction, words: CopyWords, stage: Stage): Promise<Stage>;
  copy(instruction: CopyInstruction | AddInstruction, copy: PlannedCopy, stage: Stage): Promise<Stage>;
  run(instruction: RunInstruction, stage: Stage): Promise<Stage>;
}
