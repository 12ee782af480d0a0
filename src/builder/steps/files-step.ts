import type { Instruction } from "../../dockerfile/instruction.ts";
import { ownOperationNetwork } from "../commands/network.ts";
import type { FoundFiles } from "../copy/copy.ts";
import type { AskedBuild, BuildJob } from "../job.ts";
import { titleOf } from "../location.ts";
import type { StageState } from "../state/state.ts";
import { findOrMake } from "./find-or-make.ts";
import type { Step } from "./step.ts";

/** Makes a layer of the files that an instruction has staged or found, on a service that needs no command for it. */
export async function makeFilesLayer(
  instruction: Instruction,
  ordinal: number,
  stage: StageState,
  build: BuildJob,
  found?: FoundFiles,
): Promise<StageState> {
  if (found === undefined && stage.staged.size === 0) return stage;
  return findOrMake(filesStepOf(instruction, ordinal, build.asked), stage, build, found);
}

/** Returns the step of an instruction whose files have been found and need no command. */
export function filesStepOf(
  instruction: Instruction,
  ordinal: number,
  asked: AskedBuild,
  given: Partial<Pick<Step, "directive" | "copies" | "source">> = {},
): Step {
  return {
    title: titleOf(instruction),
    line: instruction.range.start,
    ordinal,
    directive: ["files"],
    ...given,
    command: { form: "none" },
    env: {},
    cwd: "/",
    network: ownOperationNetwork(asked.commands.network),
    kind: "files",
  };
}
