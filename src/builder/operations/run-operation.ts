import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { BuildJob } from "../job.ts";
import { type FollowedOutcome, followOperation, type OperationStep, startOperation } from "./operation.ts";
import { resumeOperation } from "./unfinished.ts";

/**
 * Runs one instance to its end, or goes on with the one that a killed build has left; an interruption cancels it on the
 * service before it is passed on. Whoever has kept what a successful one comes to calls `finishOperations`.
 */
export async function runOperation(
  request: InstanceRequest,
  step: OperationStep,
  build: BuildJob,
): Promise<FollowedOutcome> {
  const resumed = build.useCache ? await resumeOperation(step, build) : undefined;
  if (resumed !== undefined) return resumed;
  const operation = await startOperation(request, step, build);
  build.emit({ type: "spawned", operation, title: step.title });
  // Those that come after it have to be made, too.
  if (step.makesLayer === true) build.early.begin();
  return followOperation(operation, step, build);
}
