import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { BuildJob } from "../job.ts";
import { type FollowedOutcome, followOperation, type OperationStep, startOperation } from "./operation.ts";
import { resumeOperation } from "./unfinished.ts";

/**
 * Runs an instance to its end, or resumes the one that a killed build has left. An interruption cancels it on the service before
 * the error is thrown. The caller calls `finishOperations` once it has stored a successful result.
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
  // The steps after it have to be run, too.
  if (step.makesLayer === true) build.early.markNeeded();
  return followOperation(operation, step, build);
}
