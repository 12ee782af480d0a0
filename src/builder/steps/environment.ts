import { proxiesAsDocker } from "../docker/variables.ts";
import type { AskedBuild } from "../job.ts";
import { environmentOf, predefinedArguments } from "../state/scope.ts";
import type { StageState } from "../state/state.ts";

/** Returns the variables of a command of this stage. */
export function environmentFor(
  stage: StageState,
  { dialect, buildArgs }: AskedBuild,
): Record<string, string> {
  const proxies = predefinedArguments(buildArgs);
  return dialect.hasDockersVariables
    ? { ...environmentOf(stage, new Map()), ...proxiesAsDocker(proxies) }
    : environmentOf(stage, proxies);
}
