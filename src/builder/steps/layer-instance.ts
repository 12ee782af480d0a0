/** Makes a layer by an instance of the service: a command, files that it places, or both. */
import { BoughError } from "../../errors.ts";
import type { OperationOutcome } from "../../service/service.ts";
import type { ImageCopy, InstanceRequest } from "../../service/wire/instance.ts";
import { isStateDiskFull } from "../../state-failure.ts";
import { keyOfCache, originOfCache } from "../cache/cache-origin.ts";
import { type ExpandedCommand, processFields } from "../commands/command.ts";
import { ownOperationNetwork } from "../commands/network.ts";
import type { BuildJob } from "../job.ts";
import { cacheIdOf } from "../mounts/mount-spec.ts";
import { prepareMounts } from "../mounts/prepare-mounts.ts";
import { type RunMounts, unexecutable } from "../mounts/run-mounts.ts";
import { FailedStepError, type StepEnvironment } from "../operations/failed-step.ts";
import { collectGarbage } from "../operations/gc.ts";
import { type FollowedOutcome, finishOperations, requireSuccess } from "../operations/operation.ts";
import { runOperation } from "../operations/run-operation.ts";
import { placementKey, placeStaged } from "../staging/placement.ts";
import { linesOfLayer } from "../state/history.ts";
import type { Layer } from "../state/layer.ts";
import { joinOrigins, type LayerOrigin } from "../state/layer-origin.ts";
import type { StageState } from "../state/state.ts";
import { configureLayer } from "./configure-stage.ts";
import { copyError, placementError } from "./faults.ts";
import type { Step } from "./step.ts";

/** The parts of a step's request besides the stage's layer and staged files. */
interface LayerInstance {
  command: ExpandedCommand;
  /** In the form that a request can carry; see `resolveUser`. */
  user?: string | undefined;
  env: Readonly<Record<string, string>>;
  cwd: string;
  /** The network, and other fields that only this kind of step has. */
  fields: Pick<InstanceRequest, "networking" | "extra_hosts" | "hostname" | "readonly_network_files">;
  /** Copies from other images, placed after the staged files. Only with the extension `copies`. */
  copies?: () => Promise<ImageCopy[]>;
  /** The mounts of `--mount`, which exist while the command runs. */
  mounts?: RunMounts | undefined;
  /** Returns a better error for an instance that has failed, if there is one. */
  findFault(outcome: OperationOutcome): Promise<BoughError | undefined>;
}

/** Makes a layer of a stage's staged files, and of copies from other images: without a command, so that the image needs no shell. */
export function makeOfFiles(
  hash: string,
  step: Step,
  stage: StageState,
  build: BuildJob,
  copies?: LayerInstance["copies"],
): Promise<Layer> {
  const instance: LayerInstance = {
    command: { form: "none" },
    ...{ env: {}, cwd: "/", fields: ownOperationNetwork(build.asked.commands.network) },
    ...(copies && { copies }),
    findFault: async (outcome) =>
      copies === undefined
        ? placementError(outcome, { form: "none" }, stage)
        : copyError(outcome, step.line, stage),
  };
  return makeByInstance(hash, step, instance, stage, build);
}

/** Runs the instance and stores its image as the layer of this chain hash. */
export async function makeByInstance(
  hash: string,
  step: Pick<Step, "title" | "ordinal" | "history" | "sources">,
  instance: LayerInstance,
  stage: StageState,
  build: BuildJob,
): Promise<Layer> {
  const { layers, store } = build.services;
  const key = `run ${hash}`;
  const { command, user, env, cwd, mounts } = instance;
  const mounting = await prepareMounts(mounts, { hash, stage, user }, build);
  const earlier = earlierImage(step, build);
  let place: StepEnvironment | undefined;
  const outcome = await mounting.retryAfterEviction(async () => {
    const { image, ...placed } = await placeStaged(hash, mounting.stage, build, earlier);
    const copies = await instance.copies?.();
    const asked: InstanceRequest = {
      ...{ image, ...processFields(command, user), env: { ...env }, cwd, ...placed },
      ...(command.form === "none" && { entries: placed.entries ?? {} }),
      ...(copies && { copies }),
      ...{ timeout: build.asked.commands.timeoutSeconds, disposable: false, ...instance.fields },
    };
    const request = { ...(await mounting.addTo(asked, instance)), ...(await linesToSend(stage, build)) };
    const lacksMounts = mounts !== undefined && request.mounts === undefined;
    // A script that wraps the command goes to its directory itself.
    place = { request: { ...request, cwd }, user, lacksMounts };
    return await runOperation(request, { key, title: step.title, makesLayer: true }, build);
  });
  collectGarbage(stage.staged.size);
  const image = await imageOf(outcome, { instance, place }, stage, build);
  return store.atomically(() => {
    finishOperations([key, placementKey(hash)], build);
    const { operation, served, imageBytes: bytes } = outcome;
    return layers.put({
      ...{ hash, image, parent: stage.layer, kind: step.history, title: step.title, operation },
      origin: originOf(step, mounts, stage, build),
      ...{ seconds: served?.seconds, bytes },
    });
  });
}

/**
 * Returns the image that this step had in the latest build of this Dockerfile: most of its files may be the same. A build without the
 * cache takes nothing from there, so that it also repairs a file that was damaged on the disk.
 */
function earlierImage(
  { ordinal }: Pick<Step, "ordinal">,
  { useCache, services: { layers, memory } }: BuildJob,
): string | undefined {
  const hash = useCache ? memory.earlierHash(ordinal) : undefined;
  return hash === undefined ? undefined : layers.imageHere(hash);
}

async function linesToSend(stage: StageState, build: BuildJob): Promise<Pick<InstanceRequest, "history">> {
  if (!(await build.services.supports.stored()).origin) return {};
  const history = linesOfLayer(stage, build.asked.buildArgs);
  return history === undefined ? {} : { history };
}

/** Returns the origin of a layer: that of all its parts, since each could have put anything into it. */
function originOf(
  { sources }: Pick<Step, "sources">,
  mounts: RunMounts | undefined,
  { layer }: StageState,
  { asked, services: { store } }: BuildJob,
): LayerOrigin {
  const caches = (mounts?.mounts ?? []).flatMap(({ spec, source }) =>
    spec.type === "cache" && source === undefined
      ? [{ ...spec, id: cacheIdOf(spec.id, asked.buildArgs) }]
      : [],
  );
  return joinOrigins([
    ...[layer, ...sources].flatMap((part) => ("isRemembered" in part ? [] : [part.origin])),
    ...caches.map((cache) => originOfCache(store.imageMetadata, keyOfCache(cache, asked.cacheRealm))),
  ]);
}

async function imageOf(
  outcome: FollowedOutcome,
  { instance, place }: { instance: LayerInstance; place: StepEnvironment | undefined },
  stage: StageState,
  build: BuildJob,
): Promise<string> {
  try {
    return requireSuccess(outcome, build.asked.commands.timeoutSeconds, unexecutable(instance.mounts));
  } catch (error) {
    if (!(error instanceof BoughError)) throw error;
    throw (await instance.findFault(outcome)) ?? (await failedStep(error, place, outcome, stage, build));
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
