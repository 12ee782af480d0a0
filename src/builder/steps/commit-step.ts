import { quote } from "../../programs/quote.ts";
import { stageKey } from "../cache/step-key.ts";
import type { ExpandedCommand } from "../commands/command.ts";
import { ownOperationNetwork } from "../commands/network.ts";
import type { BuildJob } from "../job.ts";
import { type StageState, withLayer } from "../state/state.ts";
import { findOrMake } from "./find-or-make.ts";
import { environmentFor, type Step } from "./step.ts";

/** Makes a layer, at the end of a stage, of the files and the WORKDIR that no RUN has included in its layer. */
export async function commitPending(
  stage: StageState,
  place: Pick<Step, "line" | "ordinal">,
  build: BuildJob,
): Promise<StageState> {
  if (stage.staged.size === 0 && !stage.workdirIsPending) return stage;
  return withLayer(stage, await findOrMake(commitStep(place, stage), build));
}

/** Returns a step whose command makes the directory of a pending WORKDIR, or does nothing: some services require a command. */
function commitStep(place: Pick<Step, "line" | "ordinal">, stage: StageState): Step {
  const line = stage.workdirIsPending ? `mkdir -p ${quote(stage.config.WorkingDir)}` : ":";
  const command: ExpandedCommand = { form: "shell", line };
  const step: Step = {
    ...place,
    title: stage.staged.size === 0 ? "(the WORKDIR)" : "(the staged files)",
    key: { ...stageKey(stage), instruction: "RUN", command: ["shell", line] },
    ...{ sources: [], history: "commit" },
    async make(hash, build) {
      const { makeByInstance } = await import("./layer-instance.ts");
      const { missingOwnShell, placementError } = await import("./faults.ts");
      return makeByInstance(
        hash,
        step,
        {
          ...{ command, env: environmentFor(stage, build.asked), cwd: "/" },
          fields: ownOperationNetwork(build.asked.commands.network),
          findFault: async (outcome) =>
            placementError(outcome, command, stage) ?? missingOwnShell(outcome, stage),
        },
        stage,
        build,
      );
    },
  };
  return step;
}
