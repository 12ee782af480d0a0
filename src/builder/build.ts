import { causeOf, messageOf } from "../errors.ts";
import { createSingleFlight, type SingleFlight } from "../once.ts";
import { createSemaphore } from "../semaphore.ts";
import type { ImageService } from "../service/service.ts";
import { unlessStateDiskFull } from "../state-failure.ts";
import type { FoundCommit } from "./addresses/repository-address.ts";
import { rememberTag } from "./cache/image-records.ts";
import { AbandonedError } from "./events.ts";
import { unknownUncachedStages } from "./graph/build-graph.ts";
import { mistypedStages } from "./graph/stage-references.ts";
import { unusedBuildArgs } from "./interpreter/variable-warnings.ts";
import type { BuildJob, RunningBuild, ServiceBuild, SharedBuildState, SharedWork } from "./job.ts";
import { unusedSecrets } from "./mounts/mount-support.ts";
import {
  detectEviction,
  EvictedImageError,
  forgetImage,
  isImageEvicted,
  retryAfterEviction,
} from "./operations/evicted-image.ts";
import { FailedStepError } from "./operations/failed-step.ts";
import type { BuildResult, StepRecord } from "./result.ts";
import { type BuiltTarget, runStages } from "./stages/run-stages.ts";
import { countEvents } from "./stages/step-record.ts";
import { placesByLine } from "./step-place.ts";
import { configureLayer, withLabels } from "./steps/configure-stage.ts";

/**
 * Runs every instruction. Rejects at the first that fails, with its place in the Dockerfile. The caller emits `finished`, once
 * nothing else can fail.
 */
export async function runBuild(build: ServiceBuild): Promise<BuildResult> {
  const { dockerfile, tags, session } = build.asked;
  const { clock } = build.services;
  const { emit } = build;
  const startedAt = clock.now();
  const { countedBuild, counted } = countEvents(build);
  const places = placesByLine(dockerfile);
  for (const { rule, message, range } of [
    ...dockerfile.warnings,
    ...mistypedStages(dockerfile, build.asked),
  ]) {
    const line = range.start;
    emit({ type: "warning", rule, message, line, ...places.get(line) });
  }
  const given = {
    secrets: [...build.asked.secrets.values.keys()],
    agents: [...build.asked.secrets.agents.keys()],
  };
  for (const difference of [
    ...unusedBuildArgs(dockerfile, build.asked.buildArgs),
    ...unusedSecrets(dockerfile, given, { ...build.source, ...build.asked }),
    ...unknownUncachedStages(dockerfile, build.asked.uncachedStages),
  ])
    emit({ type: "warning", ...difference, line: undefined });
  const losses = new Map<string, number>();
  const sharedState = build.sharedState ?? createSharedBuildState(build.asked.jobs);
  for (;;) {
    const shared = sharedState.work;
    const running: RunningBuild = { ...countedBuild, shared };
    try {
      const target = await configureTarget(await runStages(running));
      await requireLayers(target.stage.layer, target.job);
      for (const { layer } of target.scanTargets) {
        await requireLayers(layer, target.job);
        if (layer.cached && (await isImageEvicted(layer, target.job.services)))
          throw new EvictedImageError(layer);
      }
      await build.confirmKey?.();
      await tagTarget(target, running);
      const { image } = target.stage.layer;
      build.noteScanTargets?.(
        image,
        target.scanTargets.map(({ name, layer }) => ({ name, image: layer.image })),
      );
      const { uploaded, uploadedFor } = counted;
      const missing = build.asked.dialect.keepsConfiguration ? [] : counted.missing();
      const seconds = (clock.now() - startedAt) / 1000;
      const added = await measureLayers(target.steps, running);
      const steps = target.steps.map((record) => ({
        ...record,
        uploadedBytes: uploadedFor(record),
        addedBytes: added.get(record) ?? null,
      }));
      return { image, tags, session, steps, uploaded, missing, seconds, exported: [] };
    } catch (error) {
      // Each round forgets one image, and an image is forgotten `maxLosses` times at most, so the loop ends.
      if (!(error instanceof EvictedImageError)) throw error;
      forgetImage(error, losses, running);
      sharedState.renew(shared);
    }
  }
}

/**
 * @param jobs the number of steps that may run at once
 * @param options.keepsLayers true if a layer is made once for all builds, however late another one needs it
 * @param options.repositories commits that builds on other services find as well
 */
export function createSharedBuildState(
  jobs: number,
  {
    keepsLayers = false,
    repositories = createSingleFlight<FoundCommit>({ keeps: true }),
  }: { keepsLayers?: boolean; repositories?: SharedWork["repositories"] } = {},
): SharedBuildState {
  const slots = createSemaphore(jobs);
  // A command that several builds share fails once for all of them.
  const keepsFailure = (error: unknown) => keepsLayers && causeOf(error, FailedStepError) !== undefined;
  const start = (): SharedWork => ({
    images: unlessAbandoned(createSingleFlight({ keeps: true })),
    layers: unlessAbandoned(createSingleFlight({ keeps: keepsLayers, keepsFailure })),
    probes: unlessAbandoned(createSingleFlight()),
    warned: new Set(),
    repositories,
    slots,
  });
  const sharedState: SharedBuildState = {
    work: start(),
    renew(stale) {
      // Another build may have done it already.
      if (sharedState.work === stale) sharedState.work = start();
    },
  };
  return sharedState;
}

/** A build that waits for the work of one that has failed elsewhere does it itself. */
function unlessAbandoned<Result>(flight: SingleFlight<Result>): SingleFlight<Result> {
  return async (key, action) => {
    for (;;) {
      let isOwn = false;
      const perform = () => {
        isOwn = true;
        return action();
      };
      try {
        return await flight(key, perform);
      } catch (error) {
        if (isOwn || !(error instanceof AbandonedError)) throw error;
      }
    }
  };
}

/** Gives the target's layer its configuration and the labels of the command line: the image that the build returns. */
async function configureTarget({ stage: built, ...rest }: BuiltTarget): Promise<BuiltTarget> {
  const { job } = rest;
  const stage = withLabels(built, job.asked.labels);
  const layer = await detectEviction(stage.layer, job.services, () => configureLayer(stage, job));
  return { ...rest, stage: { ...stage, layer } };
}

/** Throws an EvictedImageError for a result from a cache that has lost one of its layers: the build then runs its steps. */
async function requireLayers(layer: BuiltTarget["stage"]["layer"], job: BuildJob): Promise<void> {
  const { service, supports, remoteBases } = job.services;
  // A remote service fetches layers only for builds with such a cache, so other cached builds save this request.
  if (remoteBases?.isOnlyPushed === true) return;
  if (!layer.cached || !(supports.isInThisProcess || remoteBases !== undefined)) return;
  if (!(await supports.remoteLayers())) return;
  const isThere = await detectEviction(layer, job.services, () => service.probeImage(layer.image));
  if (!isThere) throw new EvictedImageError(layer);
}

async function tagTarget({ stage, job }: BuiltTarget, { asked, emit }: RunningBuild): Promise<void> {
  job.services.signal.throwIfAborted();
  const { layer } = stage;
  // If everything came from the cache, no request has shown yet that the image still exists.
  if (asked.tags.length === 0 && layer.cached && (await isImageEvicted(layer, job.services)))
    throw new EvictedImageError(layer);
  for (const tag of asked.tags) {
    await retryAfterEviction({ layer, staged: new Map() }, job, () =>
      job.services.service.tagImage(layer.image, tag),
    );
    // The record only helps later builds, so a full disk is no failure.
    unlessStateDiskFull(
      () => rememberTag(tag, layer.image, job.services.store),
      () => undefined,
    );
    emit({ type: "tagged", image: layer.image, tag });
  }
}

/**
 * Returns the bytes that the layer of each step adds to its image; empty if the service does not report them. Unless the user asked
 * for them, they are only for the history: then they are measured only where that takes no request, and not for a cached build.
 */
async function measureLayers(
  steps: readonly StepRecord[],
  { asked, services, emit }: RunningBuild,
): Promise<ReadonlyMap<StepRecord, number>> {
  const isFree = services.supports.isInThisProcess && steps.some(({ cached }) => cached === false);
  if (!asked.measuresLayers && !isFree) return new Map();
  try {
    if (!(await services.supports.layerSizes())) return new Map();
    return await measure(steps, services.service);
  } catch (error) {
    services.signal.throwIfAborted();
    // The image exists, even if its layers can't be measured.
    const message = `cannot get the size of each layer: ${messageOf(error)}`;
    if (asked.measuresLayers) emit({ type: "warning", message, line: undefined });
    return new Map();
  }
}

/** Returns the bytes that the layer of each step adds, of steps in the order of the Dockerfile. The first of a stage has its base. */
export async function measure<Step extends Pick<StepRecord, "image" | "stage">>(
  steps: readonly Step[],
  service: Pick<ImageService, "layerSizes">,
): Promise<Map<Step, number>> {
  const added = new Map<Step, number>();
  const withImage = steps.flatMap((step) => (step.image === null ? [] : [{ step, image: step.image }]));
  const stages = Map.groupBy(withImage, ({ step }) => step.stage?.index);
  stages.delete(undefined);
  for (const [base, ...others] of stages.values()) {
    if (base === undefined) continue;
    for (const { step } of others) added.set(step, 0);
    const images = [base, ...others];
    const changed = others.filter(({ image }, at) => image !== images[at]?.image);
    let known = await layersIn(base.image, service);
    const all = changed.length === 0 ? known : await layersIn(changed.at(-1)?.image ?? "", service);
    const own = [...all].filter(([id]) => !known.has(id));
    const isOneEach = own.length === changed.length;
    for (const [at, { step, image }] of changed.entries()) {
      if (isOneEach) {
        added.set(step, own[at]?.[1] ?? 0);
        continue;
      }
      const layers = await layersIn(image, service);
      const bytes = [...layers].reduce((sum, [id, size]) => (known.has(id) ? sum : sum + size), 0);
      added.set(step, bytes);
      known = layers;
    }
  }
  return added;
}

/** Returns the bytes of an image's layers, the lowest first, by id. */
async function layersIn(
  image: string,
  service: Pick<ImageService, "layerSizes">,
): Promise<ReadonlyMap<string, number>> {
  return new Map((await service.layerSizes(image)).map(({ id, size }) => [id, size]));
}
