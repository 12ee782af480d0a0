import { withPrefix } from "../errors.ts";
import { formatPlatform, type Platform } from "../image/platform.ts";
import { runBuild } from "./build.ts";
import type { StepMemory } from "./cache/step-memory.ts";
import { AbandonedError, type BuildEvent, type Emit } from "./events.ts";
import type { ServiceBuild } from "./job.ts";
import type { BuildResult, StepRecord } from "./result.ts";
import type { StepPlace } from "./step-place.ts";

/**
 * Runs builds of one Dockerfile for several platforms at once. What is the same in two of one service, such as a stage for the
 * service's own platform, is done once, as they share their `SharedBuildState`. The first that fails ends the others. `image` of the result is
 * the first platform's.
 */
export async function runForPlatforms(builds: readonly PlatformBuild[]): Promise<BuildResult> {
  const failures: unknown[] = [];
  const warned: Warned = new Map();
  const run = async ({ platform, build }: PlatformBuild, at: number) => {
    const shift = shiftPlaces(build, platform, at);
    const { memory } = build.services;
    const own: ServiceBuild = {
      ...build,
      asked: { ...build.asked, platform },
      services: { ...build.services, memory: at === 0 ? memory : shiftMemory(memory, at) },
      emit: emitFor(build.emit, shift, { platform, at, warned }),
    };
    try {
      const result = await runBuild(own);
      return { ...result, steps: result.steps.map((step) => ({ ...step, ...shift(step) })) };
    } catch (error) {
      // Cancelled because another platform failed: not reported as a failure.
      if (error instanceof AbandonedError) failures.push(error);
      else failures.unshift(withPrefix(error, formatPlatform(platform)));
      build.stop(new AbandonedError());
      return undefined;
    }
  };
  const results = (await Promise.all(builds.map(run))).filter((result) => result !== undefined);
  const [first] = results;
  if (first === undefined || failures.length > 0) throw failures[0];
  return {
    ...first,
    platforms: results.map(({ image }, at) => ({
      platform: formatPlatform((builds[at] as PlatformBuild).platform),
      image,
    })),
    steps: results.flatMap(({ steps }) => steps),
    uploaded: {
      files: results.reduce((sum, { uploaded }) => sum + uploaded.files, 0),
      bytes: results.reduce((sum, { uploaded }) => sum + uploaded.bytes, 0),
    },
    seconds: Math.max(...results.map(({ seconds }) => seconds)),
  };
}

/** A build for one platform of several. */
interface PlatformBuild {
  platform: Platform;
  /** Its shared state is that of all builds on the same service. */
  build: ServiceBuild;
}

/** Returns a function that gives a platform's steps and stages numbers and names of their own, for displays. */
function shiftPlaces({ asked: { dockerfile } }: ServiceBuild, platform: Platform, at: number) {
  const { instructions, stages } = dockerfile;
  const prefix = formatPlatform(platform);
  return ({ stage, step }: StepPlace): StepPlace => ({
    stage: stage && {
      index: stage.index + at * stages.length,
      name: [prefix, stage.name ?? (stages.length > 1 ? `stage-${stage.index}` : undefined)]
        .filter((part) => part !== undefined)
        .join(" "),
    },
    step: step + at * instructions.length,
  });
}

/** The platform whose build was the first with a warning, by its line and message. */
type Warned = Map<string, number>;

function emitFor(
  emit: Emit,
  shift: (place: StepPlace) => StepPlace,
  { platform, at, warned }: { platform: Platform; at: number; warned: Warned },
): Emit {
  return (event) => {
    if (event.type === "warning") {
      const key = JSON.stringify([event.line, event.message]);
      if (warned.getOrInsert(key, at) !== at) return;
    }
    if (event.step === undefined) {
      emit(event);
      return;
    }
    const shifted: BuildEvent = { ...event, ...shift(event) };
    if (shifted.type === "step") {
      // Even with a single stage, a line must name its platform.
      const { inStage = { step: event.step, steps: shifted.steps }, counted } = shifted;
      const label = `${formatPlatform(platform)} ${counted?.label}`.trimEnd();
      emit({ ...shifted, inStage, ...(counted && { counted: { ...counted, label } }) });
      return;
    }
    emit(shifted.type === "step-end" ? { ...shifted, record: shiftRecord(shifted.record, shift) } : shifted);
  };
}

function shiftRecord(record: StepRecord, shift: (place: StepPlace) => StepPlace): StepRecord {
  return { ...record, ...shift(record) };
}

/** A larger number than any Dockerfile's ordinals. */
const ordinalsOfPlatform = 1_000_000;

/** Keeps the remembered steps of one platform apart from those of the others. */
function shiftMemory(memory: StepMemory, at: number): StepMemory {
  const from = at * ordinalsOfPlatform;
  const shift = <Step extends { ordinal: number }>(step: Step): Step => ({
    ...step,
    ordinal: step.ordinal + from,
  });
  return {
    explains: memory.explains,
    explain: (step, titles) => memory.explain(shift(step), titles),
    compareShared: (step, hash, titles) => memory.compareShared(shift(step), hash, titles),
    earlierHash: (ordinal) => memory.earlierHash(ordinal + from),
    needsInputs: (step, hash) => memory.needsInputs(shift(step), hash),
    remember: (step, hash, signal) => memory.remember(shift(step), hash, signal),
    forgetOthers: () => undefined,
  };
}
