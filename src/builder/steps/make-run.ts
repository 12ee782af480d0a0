import type { InstanceRequest } from "../../service/wire/instance.ts";
import { hostFields, hostNameKey, networkFields, networkOf, runHostName } from "../commands/network.ts";
import { findHome } from "../docker/variables.ts";
import type { BuildJob } from "../job.ts";
import { resolveUser } from "../owners/ownership.ts";
import type { Layer } from "../state/layer.ts";
import type { StageState } from "../state/state.ts";
import { missingShell, placementError } from "./faults.ts";
import { makeByInstance } from "./layer-instance.ts";
import { type MountedCommand, withScriptFile } from "./script-file.ts";
import type { Step } from "./step.ts";

/** A RUN with the environment and the stage that its request is made of. */
interface RunToMake extends MountedCommand {
  env: Readonly<Record<string, string>>;
  stage: StageState;
}

/** Runs the command of a RUN. */
export async function makeRun(hash: string, step: Step, run: RunToMake, build: BuildJob): Promise<Layer> {
  const { services, asked } = build;
  const { instruction, stage } = run;
  // Requested now, so that the response arrives while files are sent.
  services.supports.userNumbers().catch(() => undefined);
  const { command, mounts } = await withScriptFile(run, services.supports);
  const user = await resolveUser(stage, step.line, build);
  return makeByInstance(
    hash,
    step,
    {
      ...{ command, user, mounts },
      env: { ...(await findHome(stage, build)), ...run.env },
      cwd: stage.config.WorkingDir,
      fields: {
        ...networkFields(networkOf(instruction, asked.commands.network)),
        ...hostFields(asked.commands.hosts),
        ...(await networkFiles(build)),
      },
      findFault: async (outcome) =>
        placementError(outcome, run.command, stage) ??
        missingShell(outcome, { command, hasMounts: mounts !== undefined }, stage, services),
    },
    stage,
    build,
  );
}

/** Docker's host name, and its network files: read-only, as changes to them would be in no layer. */
async function networkFiles({
  asked,
  services,
}: BuildJob): Promise<Pick<InstanceRequest, "readonly_network_files" | "hostname">> {
  const hostname = runHostName(asked);
  if (hostname === undefined) return {};
  if (await services.supports.readonlyNetworkFiles()) return { hostname, readonly_network_files: true };
  return hostNameKey(asked) === undefined ? {} : { hostname };
}
