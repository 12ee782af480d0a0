import { createPace } from "../pace.ts";
import {
  detectLoss,
  forgetLayer,
  isImageMissing,
  MissingImageError,
  retryAfterLoss,
} from "./cache/missing-image.ts";
import { emitFor } from "./events.ts";
import { interpret, startInterpretation } from "./interpreter/interpret.ts";
import { createLiveWorld } from "./interpreter/live-world.ts";
import { titleOf, withLocation } from "./interpreter/location.ts";
import { defaultPlatform, dependsOnPlatform, type Platform, parsePlatform } from "./interpreter/platform.ts";
import { commitPending } from "./interpreter/run.ts";
import type { StageState } from "./interpreter/state.ts";
import { countEvents, recordStep } from "./interpreter/step-record.ts";
import { unusedBuildArgs } from "./interpreter/unused-arguments.ts";
import { explainReasonsOnce } from "./interpreter/warnings.ts";
import type { BuildJob, BuildRequest, RunningBuild } from "./job.ts";
import type { BuildResult, StepRecord } from "./result.ts";
import { createEarlyUploads } from "./staging/early-uploads.ts";
import { createLookAhead } from "./staging/look-ahead.ts";
import { placesByLine, type Step, stepsOf } from "./step-place.ts";

/**
 * Runs every instruction; rejects at the first that fails, with its place in the Dockerfile. That it has `finished` is said by
 * whoever knows that nothing else can fail.
 */
export async function runBuild(build: BuildRequest): Promise<BuildResult> {
  const { dockerfile, emit, clock, tags, session } = build;
  const startedAt = clock.now();
  const { request, uploaded, skippedCopies } = countEvents(build);
  const explain = explainReasonsOnce();
  const places = placesByLine(dockerfile);
  for (const { rule, message, range } of dockerfile.warnings) {
    const line = range.start;
    emit({ type: "warning", rule, message, line, ...places.get(line) });
  }
  for (const difference of unusedBuildArgs(dockerfile, build.buildArgs))
    emit({ type: "warning", ...difference, line: undefined });
  for (;;) {
    const early = createEarlyUploads({ ...request, uploads: request.store.uploads });
    const job: RunningBuild = { ...request, explain, early, ahead: createLookAhead({ ...request, early }) };
    try {
      const { image, steps } = await runInstructions(job);
      const seconds = (clock.now() - startedAt) / 1000;
      return { image, tags, session, steps, uploaded, skippedCopies: [...skippedCopies], seconds };
    } catch (error) {
      // Each round drops one layer, so there is an end to it.
      if (!(error instanceof MissingImageError)) throw error;
      forgetLayer(error, job);
    } finally {
      await Promise.all([job.ahead.stop(), early.stop()]);
    }
  }
}

async function runInstructions(running: RunningBuild): Promise<{ image: string; steps: StepRecord[] }> {
  const { dockerfile, emit, tags } = running;
  const steps: StepRecord[] = [];
  let state = startInterpretation<StageState>(await findPlatform(running), running.buildArgs);
  /** RUNs so far, of all stages. */
  let runs = 0;
  const pace = createPace(running.signal);
  const sequence = stepsOf(dockerfile);
  for (const step of sequence) {
    running.signal.throwIfAborted();
    const pause = pace.step();
    if (pause !== undefined) await pause;
    const { instruction } = step;
    const build = inStep(step, running);
    build.emit({ type: "step", instruction, steps: sequence.length });
    const since = build.clock.now();
    if (instruction.name === "FROM" || instruction.name === "RUN") {
      build.early.hold();
      build.ahead.begin(step.step);
    }
    const next = await withLocation(build, instruction, () =>
      detectLoss(state.stage, build, () => interpret(instruction, state, createLiveWorld(build, runs))),
    );
    const record = recordStep(describeStep(step, since, build), state.stage, next.stage);
    steps.push(record);
    build.emit({ type: "step-end", record });
    state = next;
    if (instruction.name === "RUN") runs += 1;
  }
  const last = sequence.at(-1);
  if (state.stage === undefined || last === undefined)
    throw new Error("a Dockerfile without a FROM does not parse");
  const build = inStep(last, running);
  const stage = await commitLast(last, { stage: state.stage, runs }, steps, build);
  build.signal.throwIfAborted();
  const { image } = stage.layer;
  // Where everything came from the cache, nothing has asked yet whether the result is still there.
  if (tags.length === 0 && (await isImageMissing(stage.layer, build)))
    throw new MissingImageError(stage.layer);
  for (const tag of tags) {
    await retryAfterLoss({ ...stage, staged: new Map() }, build, () => build.service.tagImage(image, tag));
    emit({ type: "tagged", image, tag });
  }
  return { image, steps };
}

/** What the last instructions have left to do is a step of its own, on the last one's line. */
async function commitLast(
  last: Step,
  { stage, runs }: { stage: StageState; runs: number },
  steps: StepRecord[],
  build: BuildJob,
): Promise<StageState> {
  const since = build.clock.now();
  build.early.hold();
  const committed = await withLocation(build, last.instruction, () => commitPending(stage, runs, build));
  if (committed !== stage) steps.push(recordStep(describeStep(last, since, build), stage, committed));
  return committed;
}

function inStep(step: Step, running: RunningBuild): BuildJob {
  return { ...running, emit: emitFor(step, running.emit) };
}

function describeStep({ stage, step, instruction }: Step, since: number, { clock }: BuildJob) {
  const seconds = (clock.now() - since) / 1000;
  return { stage, step, line: instruction.range.start, instruction: titleOf(instruction), seconds };
}

/** Spec 1: `build:<sha16(abspath(context))>`. */
export function buildSession(contextDirectory: string): string {
  return `build:${new Bun.CryptoHasher("sha256").update(contextDirectory).digest("hex").slice(0, 16)}`;
}

/** `undefined` where no instruction has to know it. */
async function findPlatform({ dockerfile, service }: RunningBuild): Promise<Platform | undefined> {
  if (!dependsOnPlatform(dockerfile)) return undefined;
  return parsePlatform((await service.capabilities.platform()) ?? defaultPlatform);
}
