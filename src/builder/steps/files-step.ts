import type { Instruction } from "../../dockerfile/instruction.ts";
import { quote } from "../commands/command.ts";
import { ownOperationNetwork } from "../commands/network.ts";
import type { FoundFiles } from "../copy/copy.ts";
import type { AskedBuild, BuildJob } from "../job.ts";
import { titleOf } from "../location.ts";
import type { StageState } from "../state/state.ts";
import { findOrMake } from "./find-or-make.ts";
import { environmentFor, type Step } from "./step.ts";

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
  given: Partial<Pick<Step, "directive" | "copies" | "source" | "sources">> = {},
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

/** Makes a layer, at the end of a stage, of what no RUN has taken over. */
export async function commitPending(
  stage: StageState,
  place: Pick<Step, "line" | "ordinal">,
  build: BuildJob,
): Promise<StageState> {
  if (stage.staged.size === 0 && !stage.workdirIsPending) return stage;
  return findOrMake(commitStepOf(place, stage, build.asked), stage, build);
}

/** Returns a command that makes the directory of a pending WORKDIR, or does nothing. */
function commitStepOf(place: Pick<Step, "line" | "ordinal">, stage: StageState, asked: AskedBuild): Step {
  const command = stage.workdirIsPending ? `mkdir -p ${quote(stage.config.WorkingDir)}` : ":";
  return {
    ...place,
    title: stage.staged.size === 0 ? "(the WORKDIR)" : "(the staged files)",
    directive: ["RUN", "shell", command],
    command: { form: "shell", line: command },
    env: environmentFor(stage, asked),
    cwd: "/",
    network: ownOperationNetwork(asked.commands.network),
    kind: "commit",
  };
}
