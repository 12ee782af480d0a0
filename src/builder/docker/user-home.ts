import { homeOf } from "../copy/ownership.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";

/** Whoever announces it sets HOME itself, as runc does: to what the image's passwd has for the process's user. */
const homeExtension = "home";

/**
 * HOME as Docker sets it for a process, where neither the image nor the Dockerfile does: of its USER. Nothing where the
 * service does that by itself, or can't be asked who that is.
 */
export async function findHome(stage: StageState, build: BuildJob): Promise<{ HOME?: string }> {
  const user = stage.config.User;
  if (build.mode === "default" || user === undefined || stage.inherited?.has("HOME")) return {};
  if ((await build.service.capabilities.extensions()).has(homeExtension)) return {};
  const HOME = await homeOf(user, stage, build);
  return HOME === undefined ? {} : { HOME };
}
