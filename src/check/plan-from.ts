import {
  expandBase,
  OtherPlatformError,
  requireImage,
  requirePlatform,
} from "../builder/interpreter/base.ts";
import { localBaseUrl } from "../builder/interpreter/local-base.ts";
import { lookUp } from "../builder/interpreter/state.ts";
import type { FromInstruction } from "../dockerfile/instruction.ts";
import { parseReference } from "../service/images/reference.ts";
import { isTag } from "../service/images/tag.ts";
import { type PlanJob, type PlannedStage, type PlanState, startStage } from "./plan-state.ts";

/** FROM: whether it names what could be an image, of a platform that the service runs. */
export function planFrom(from: FromInstruction, { globals, stages }: PlanState, job: PlanJob): PlannedStage {
  const lookup = lookUp(new Map(), globals);
  const reference = expandBase(from, lookup, job.escape);
  const earlier = stages.get(reference.toLowerCase());
  if (earlier === undefined) {
    requireImage(reference);
    const parsed = isTag(reference) ? undefined : parseReference(reference);
    if (parsed?.kind === "local") localBaseUrl(parsed, job);
  }
  try {
    requirePlatform(from, job.platform?.platform, lookup, job.escape);
  } catch (error) {
    if (!(error instanceof OtherPlatformError) || job.platform?.isCertain === true) throw error;
    job.warn("OtherPlatform", error.message, from);
  }
  const stage = startStage(from);
  return earlier === undefined ? stage : { ...earlier, name: stage.name };
}
