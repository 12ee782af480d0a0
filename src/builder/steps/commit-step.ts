import { quote } from "../commands/command.ts";
import { ownOperationNetwork } from "../commands/network.ts";
import type { AskedBuild, BuildJob } from "../job.ts";
import type { StageState } from "../state/state.ts";
import { environmentFor } from "./environment.ts";
import { findOrMake } from "./find-or-make.ts";
import type { Step } from "./step.ts";

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
