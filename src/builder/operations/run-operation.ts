import { isRefusalOfCall, NotFoundError, UnknownOutcomeError } from "../../service/http/errors.ts";
import type { ImageService, OperationOutcome } from "../../service/service.ts";
import type { InstanceRequest, NetworkMode } from "../../service/wire/instance.ts";
import type { UnfinishedEntry } from "../../store/unfinished.ts";
import { ownOperationNetwork } from "../commands/network.ts";
import type { BuildJob, BuildServices } from "../job.ts";
import {
  createOutputReporter,
  type FollowedOutcome,
  finishOperations,
  followStepOperation,
  isSuccess,
  type OperationStep,
  otherOperations,
  outputLimit,
  startStepOperation,
} from "./operation.ts";

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
  const operation = await startStepOperation(request, step, build);
  build.emit({ type: "spawned", operation, title: step.title });
  // The steps after it have to be run, too.
  if (step.makesLayer === true) build.eagerUploads.markNeeded();
  return followStepOperation(operation, step, build);
}

/** Time after which a request that was sent just before a kill has become an operation, or never will. */
const settlingMilliseconds = 5000;
const searchIntervalMilliseconds = 500;

/**
 * Returns the outcome of the step's operation if a dead build has started it. Follows it if it still runs; takes it over if it
 * has succeeded. Returns `undefined` if there is none or it failed.
 */
async function resumeOperation(step: OperationStep, build: BuildJob): Promise<OperationOutcome | undefined> {
  const { store, owner } = build.services;
  const { session } = build.asked;
  const left = store.unfinished.takeOver(session, step.key, owner.id, owner.isAlive);
  if (left === undefined) return undefined;
  const operation = left.operation ?? (await findLostOperation(left, step, build));
  if (operation !== undefined) {
    store.unfinished.setOperation(left, operation);
    const outcome = await continueOperation(operation, step, build);
    if (outcome !== undefined) return outcome;
  }
  finishOperations([step.key], build);
  return undefined;
}

/** Finds the operation if the build was killed before it received the response to its request. */
async function findLostOperation(
  { requestId, startedAt }: UnfinishedEntry,
  { title }: OperationStep,
  build: BuildJob,
): Promise<string | undefined> {
  const { service, supports, clock, signal } = build.services;
  const { emit } = build;
  const repeats = otherOperations(requestId, build.services);
  for (;;) {
    const found = await service.findSpawned({
      requestId,
      repeats,
      truncateAt: outputLimit,
      since: startedAt,
    });
    if (!supports.operationList()) {
      const message = `an earlier build ended while starting ${title}, and the service can't tell whether that is still running`;
      emit({ type: "warning", message, line: undefined });
      return undefined;
    }
    const left = startedAt + settlingMilliseconds - clock.now();
    if (found !== undefined || left <= 0) return found;
    await clock.sleep(Math.min(left, searchIntervalMilliseconds), signal);
  }
}

async function continueOperation(
  operation: string,
  step: OperationStep,
  build: BuildJob,
): Promise<OperationOutcome | undefined> {
  const { service } = build.services;
  const { emit } = build;
  const { title } = step;
  try {
    const hasEnded = await service.hasEnded(operation).catch((error: unknown) => {
      // The service need not know an operation of an earlier build any more, whatever it answers instead.
      if (isRefusalOfCall(error)) return undefined;
      throw error;
    });
    if (hasEnded === undefined) return undefined;
    if (!hasEnded) {
      emit({ type: "resumed", operation, title });
      return await followStepOperation(operation, step, build);
    }
    const outcome = await service.follow(
      operation,
      undefined,
      undefined,
      build.asked.commands.timeoutSeconds,
    );
    if (!isSuccess(outcome) || !(await hasImage(outcome, build.services))) return undefined;
    emit({ type: "resumed", operation, title });
    if (step.showsOutput !== false) {
      const output = createOutputReporter(operation, emit, build.services.signal);
      for (const stream of ["stdout", "stderr"] as const)
        output.reportRest({ stream, text: outcome[stream].text });
      output.end(outcome, true);
    }
    return outcome;
  } catch (error) {
    if (error instanceof NotFoundError || error instanceof UnknownOutcomeError) return undefined;
    throw error;
  }
}

/** Returns false if the service has lost the image. If it can't be asked, the image is assumed to exist. */
async function hasImage({ image }: OperationOutcome, { service }: BuildServices): Promise<boolean> {
  return image === undefined || (await service.hasImage(image)) !== false;
}

/** Linux takes arguments of up to 128 KiB. */
const maxArgumentBytes = 100 * 1024;

interface ScriptOptions {
  /** A path that the image lacks, for a script that is too long for an argument. */
  place: string;
  service: Pick<ImageService, "uploadStream">;
  network: NetworkMode;
  timeoutSeconds: number;
}

/**
 * Returns the fields that run a script of bough's own as root. It uses only fields that the specification names: a service that
 * ignored standard input would run nothing, and say that it had succeeded.
 */
export async function scriptFields(
  script: string,
  placed: Pick<InstanceRequest, "files" | "entries" | "copies">,
  { place, service, network, timeoutSeconds }: ScriptOptions,
): Promise<Omit<InstanceRequest, "image">> {
  const fields = {
    command: "sh",
    shell: false,
    cwd: "/",
    ...placed,
    timeout: timeoutSeconds,
    disposable: false,
    ...ownOperationNetwork(network),
  };
  if (Buffer.byteLength(script) <= maxArgumentBytes) return { ...fields, args: ["-c", script] };
  const file = new Blob([`rm -f ${place}\n${script}`]);
  const { uuid } = await service.uploadStream(() => file.stream(), { contentLength: file.size });
  const files = { ...placed.files, [place]: { uuid, uid: 0, gid: 0, mode: "0600" } };
  return { ...fields, args: ["-c", `. ${place}`], files };
}
