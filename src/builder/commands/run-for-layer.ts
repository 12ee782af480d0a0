import { posix } from "node:path";
import { BoughError } from "../../errors.ts";
import type { OperationOutcome } from "../../service/service.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import { isStateDiskFull } from "../../state-failure.ts";
import { explainStep } from "../cache/explain-step.ts";
import type { Layer } from "../cache/layer-cache.ts";
import type { RememberedStep } from "../cache/step-memory.ts";
import { resolveUser } from "../copy/ownership.ts";
import { findHome } from "../docker/user-home.ts";
import { linesOfLayer } from "../interpreter/history.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import { prepareMounts } from "../mounts/prepare-mounts.ts";
import { cannotBeStarted } from "../operations/ask-image.ts";
import { FailedStepError, type StepEnvironment } from "../operations/failed-step.ts";
import { missingShell } from "../operations/missing-shell.ts";
import { type FollowedOutcome, finishOperations, requireSuccess } from "../operations/operation.ts";
import { runOperation } from "../operations/run-operation.ts";
import { configurationSupport, configureLayer } from "../stages/configure-stage.ts";
import { collectGarbage } from "../staging/gc.ts";
import type { StagedLoan } from "../staging/lending.ts";
import { placementKey, placeStaged } from "../staging/placement.ts";
import { lineNamedIn, PlacementError } from "../staging/placement-error.ts";
import { takesEntries } from "../staging/request-fields.ts";
import { type RunSpec, requestOf } from "./run-spec.ts";

/** Runs the command of a step and stores its image as the layer of this chain hash. */
export async function runForLayer(
  hash: string,
  spec: RunSpec,
  remembered: RememberedStep,
  stage: StageState,
  build: BuildJob,
): Promise<Layer> {
  const { layers, store } = build;
  const key = `run ${hash}`;
  explainStep(spec, remembered, hash, stage, build);
  // A user who asked only for the explanation has stopped the build.
  build.signal.throwIfAborted();
  const user = spec.isCommit ? undefined : await resolveUser(stage, build);
  const env = { ...(spec.isCommit ? {} : await findHome(stage, build)), ...spec.env };
  const mounting = await prepareMounts(spec.mounts, { hash, stage }, build);
  let place: StepEnvironment | undefined;
  const outcome = await mounting.retryAfterLoss(async () => {
    const { loan, ...placed } = await placeStaged(hash, mounting.stage, build);
    let mounted: readonly StagedLoan[] = [];
    try {
      const copies = await spec.copies?.();
      const makesEntries = (spec.isCommit || spec.mounts !== undefined) && (await takesEntries(build));
      const given = { ...placed, ...(copies && { copies }), timeout: build.timeoutSeconds };
      const { request, loans } = await mounting.addTo(requestOf({ ...spec, env }, user, given), spec, user);
      mounted = loans;
      const beside = { ...(await linesToSend(stage, build)), ...(await networkFiles(spec, build)) };
      const whole = { ...(makesEntries ? withEntries(request, spec, stage) : request), ...beside };
      const lacksMounts = spec.mounts !== undefined && whole.mounts === undefined;
      const lentToMounts = new Map(loans.map(({ id, files }) => [id, files]));
      place = { request: whole, user, lacksMounts, lent: loan?.files, lentToMounts };
      return await runOperation(whole, { key, title: spec.title, makesLayer: true }, build);
    } finally {
      for (const ended of [loan, ...mounted]) ended?.end();
    }
  });
  collectGarbage(stage.staged.size);
  const result = await resultOf(outcome, { spec, place }, stage, build);
  return store.atomically(() => {
    finishOperations([key, placementKey(hash)], build);
    const { operation, served, imageBytes: bytes } = outcome;
    return layers.put({
      hash,
      image: result,
      parent: stage.layer,
      kind: spec.isCommit ? "commit" : "run",
      title: spec.title,
      operation,
      seconds: served?.seconds,
      bytes,
    });
  });
}

async function linesToSend(stage: StageState, build: BuildJob): Promise<Pick<InstanceRequest, "history">> {
  if (!(await configurationSupport(build)).origin) return {};
  const history = linesOfLayer(stage, build.buildArgs);
  return history === undefined ? {} : { history };
}

/** Makes these files read-only, as in Docker: changes to them would be in no layer. */
async function networkFiles(
  { isCommit }: RunSpec,
  { mode, service }: BuildJob,
): Promise<Pick<InstanceRequest, "readonly_network_files">> {
  if (isCommit || mode === "default") return {};
  const extensions = await service.capabilities.extensions();
  return extensions.has("readonly-network-files") ? { readonly_network_files: true } : {};
}

/** Makes what needs no command by entries of the request: a commit, so that the image needs no shell, and a WORKDIR below mounts. */
function withEntries(request: InstanceRequest, { isCommit }: RunSpec, stage: StageState): InstanceRequest {
  if (!isCommit) return request.mounts === undefined ? request : withWorkdir(request, stage);
  const { args: _, ...rest } = request;
  return withWorkdir({ ...rest, command: "", shell: false, entries: request.entries ?? {} }, stage);
}

/**
 * Adds the directory of a WORKDIR that no layer has yet. Usually a command makes it by starting in it; but where a mount is at it
 * or below it, it would be a mount point, which is removed after the command.
 */
function withWorkdir(request: InstanceRequest, { workdirIsPending, config }: StageState): InstanceRequest {
  if (!workdirIsPending || config.WorkingDir === "/") return request;
  const workdir = { [config.WorkingDir]: { type: "directory", uid: 0, gid: 0 } } as const;
  return { ...request, entries: { ...workdir, ...request.entries } };
}

async function resultOf(
  outcome: FollowedOutcome,
  { spec, place }: { spec: RunSpec; place: StepEnvironment | undefined },
  stage: StageState,
  build: BuildJob,
): Promise<string> {
  try {
    return requireSuccess(outcome, build.timeoutSeconds);
  } catch (error) {
    if (!(error instanceof BoughError)) throw error;
    const missing = placementError(outcome, spec, stage) ?? (await missingShell(outcome, spec, stage, build));
    throw missing ?? (await failedStep(error, place, outcome, stage, build));
  }
}

/** Returns the error itself if the step can't be kept for inspection, because the disk of bough's state is full. */
async function failedStep(
  error: BoughError,
  place: StepEnvironment | undefined,
  outcome: FollowedOutcome,
  stage: StageState,
  build: BuildJob,
): Promise<BoughError> {
  try {
    return new FailedStepError(error, place, await configureLayer(stage, build, "step"), outcome);
  } catch (cause) {
    if (isStateDiskFull(cause)) return error;
    throw cause;
  }
}

/** Returns an error if the step never ran or has no command of its own: the fault is in what was to be put in place for it. */
function placementError(
  outcome: OperationOutcome,
  { isCommit, directive, copies, line }: RunSpec,
  { staged }: StageState,
): PlacementError | undefined {
  const { status, error, operation } = outcome;
  if (copies !== undefined && status === "FAILED" && error !== undefined)
    return new PlacementError(`${error} (operation ${operation})`, lineNamedIn(error, staged) ?? line);
  if (status === "FAILED" && error !== undefined) {
    // The error may well be about the program itself, which can't be started.
    const [, form, program = ""] = directive;
    const isProgram = (path: string) => form === "exec" && posix.basename(path) === posix.basename(program);
    const line = lineNamedIn(error, new Map([...staged].filter(([path]) => !isProgram(path))));
    return line === undefined ? undefined : new PlacementError(`${error} (operation ${operation})`, line);
  }
  if (!isCommit || !cannotBeStarted(outcome)) return undefined;
  const message = `the image has no shell (/bin/sh), which bough needs to make a layer of the staged files (operation ${operation})`;
  return new PlacementError(message, [...staged.values()].at(-1)?.line, {
    hint: "Start from an image that has a shell, or end with a RUN in exec form of a program that the image has.",
  });
}
