import type { BuildJob } from "../job.ts";
import { homeOf } from "../owners/ownership.ts";
import type { StageState } from "../state/state.ts";

/**
 * Returns the HOME that Docker sets for a process if neither the image nor the Dockerfile sets one: that of its USER. Returns
 * nothing if the service sets it, or if the user can't be looked up.
 */
export async function findHome(stage: StageState, build: BuildJob): Promise<{ HOME?: string }> {
  const user = stage.config.User;
  if (!build.asked.dialect.looksUpUsers || user === undefined || stage.inherited?.has("HOME")) return {};
  if (await build.services.supports.home()) return {};
  const HOME = await homeOf(user, stage, build);
  return HOME === undefined ? {} : { HOME };
}
