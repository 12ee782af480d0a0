import { type Clock, steadyTime } from "../../clock.ts";
import type { ArgInstruction, Instruction } from "../../dockerfile/instruction.ts";
import { createPace } from "../../pace.ts";
import { abandonmentOf, type CountedAsDocker, emitFor, type StepInStage } from "../events.ts";
import { createExecutor } from "../interpreter/executor.ts";
import { interpretFrom, interpretInStage } from "../interpreter/interpret.ts";
import { declareGlobals } from "../interpreter/settings.ts";
import type { BuildJob } from "../job.ts";
import { showInstruction, titleOf, withLocation } from "../location.ts";
import { detectEviction, EvictedImageError } from "../operations/evicted-image.ts";
import type { Arguments } from "../state/scope.ts";
import type { StageState } from "../state/state.ts";
import type { PlacedInstruction } from "../step-place.ts";
import { commitPending } from "../steps/commit-step.ts";
import type { RunningStages } from "./running-stages.ts";
import { recordStep } from "./step-record.ts";

/** A time by which a nearby service has found an image, so that it is known which files are needed. */
const promptMilliseconds = 100;

/** Performs an ARG before the first FROM. */
export async function performGlobal(
  step: PlacedInstruction,
  instruction: ArgInstruction,
  globals: Arguments,
  { running, steps, records }: Pick<RunningStages, "running" | "steps" | "records">,
): Promise<Arguments> {
  const emit = emitFor(step, running.emit);
  emit({ type: "step", instruction: showInstruction(instruction), steps: steps.length });
  const since = steadyTime(running.services.clock);
  const { buildArgs, dockerfile } = running.asked;
  const declared = await withLocation(running.asked, instruction, async () =>
    declareGlobals(instruction, globals, { buildArgs, escape: dockerfile.escape }),
  );
  const record = recordStep(describeStep(step, since, running.services.clock), undefined, undefined);
  records.push(record);
  emit({ type: "step-end", record });
  return declared;
}

/** Performs a stage's instructions, including its FROM. Returns the final state; files may still be staged for a layer. */
export async function runStage(index: number, stages: RunningStages): Promise<StageState> {
  const {
    services: { signal },
  } = stages.running;
  const own = stages.stepsOf(index);
  const counted = own.filter(({ instruction }) => isCounted(instruction, stages));
  const isOnly = stages.running.asked.dockerfile.stages.length === 1;
  const label = isOnly ? "" : (own[0]?.stage?.name ?? `stage-${index}`);
  let counter = 0;
  const pace = createPace(signal);
  let state: StageState | undefined;
  for (const [at, step] of own.entries()) {
    signal.throwIfAborted();
    const pause = pace.step();
    if (pause !== undefined) await pause;
    await stages.waitFor(step.instruction);
    const before = state;
    const inStage = stages.areMany() ? { step: at + 1, steps: own.length } : undefined;
    const shown = isCounted(step.instruction, stages)
      ? { counted: { step: ++counter, steps: counted.length, label } }
      : {};
    state = await inSlot(stages, () => performStep({ ...step, inStage, ...shown }, before, stages));
  }
  if (state === undefined) throw new Error("a stage begins with a FROM");
  return state;
}

/** Returns true for instructions that BuildKit counts: a FROM of an image, and those that make a layer. */
function isCounted(instruction: Instruction, { results }: Pick<RunningStages, "results">): boolean {
  if (instruction.name !== "FROM") return ["ADD", "COPY", "RUN", "WORKDIR"].includes(instruction.name);
  return instruction.image !== "scratch" && results.baseOf(instruction) === undefined;
}

/** Makes a layer of the files still staged at a stage's end. This is a step of its own, on the line of the last instruction. */
export async function commitStage(
  index: number,
  state: StageState,
  stages: RunningStages,
): Promise<StageState> {
  const last = lastStepOf(index, stages);
  const job = jobOf(last, stages);
  return inSlot(stages, async () => {
    const since = steadyTime(job.services.clock);
    job.eagerUploads.markUncertain();
    const place = { line: last.instruction.range.start, ordinal: stages.ordinals.ofCommit(index) };
    const committed = await withFailure(job, last.instruction, () => commitPending(state, place, job));
    if (committed !== state)
      stages.records.push(recordStep(describeStep(last, since, job.services.clock), state, committed));
    return committed;
  });
}

export function lastStepOf(index: number, { stepsOf }: Pick<RunningStages, "stepsOf">): PlacedInstruction {
  const last = stepsOf(index).at(-1);
  if (last === undefined) throw new Error("a stage begins with a FROM");
  return last;
}

/** Returns the job of a step, with its stage's uploads and its place in events. */
export function jobOf(
  step: PlacedInstruction,
  { running, platforms, results, prefetchOf, uncached, ordinals }: RunningStages,
): BuildJob {
  const index = step.stage?.index ?? 0;
  const { eagerUploads, prefetch } = prefetchOf(index);
  const emit = emitFor(step, running.emit);
  const useCache = running.asked.useCache && !uncached.has(index);
  const layerTitles = ordinals.titles;
  return { ...running, platforms, stages: results, eagerUploads, prefetch, emit, useCache, layerTitles };
}

interface ShownPlaces {
  inStage: StepInStage | undefined;
  counted?: CountedAsDocker;
}

async function performStep(
  { inStage, counted, ...step }: PlacedInstruction & ShownPlaces,
  before: StageState | undefined,
  stages: RunningStages,
): Promise<StageState> {
  const { instruction } = step;
  const { steps, records, globals } = stages;
  const job = jobOf(step, stages);
  const needs = stages.needsOf(instruction);
  job.emit({
    ...{ type: "step", instruction: showInstruction(instruction), steps: steps.length },
    ...(inStage === undefined ? {} : { inStage }),
    ...(counted === undefined ? {} : { counted }),
    ...(needs.length === 0 ? {} : { needs }),
  });
  const since = steadyTime(job.services.clock);
  if (instruction.name === "FROM" || instruction.name === "RUN") {
    job.eagerUploads.markUncertain();
    job.prefetch.begin(step.step);
  }
  const backend = createExecutor(job, stages.ordinals.ofStep(step));
  const state = await withFailure(job, instruction, () =>
    detectEviction(before?.layer, job.services, async () => {
      if (instruction.name === "FROM")
        return meanwhile(() => interpretFrom(instruction, globals, backend), job);
      if (before === undefined) throw new Error("a stage begins with a FROM");
      return interpretInStage(instruction, before, globals, backend);
    }),
  );
  // The layer of a stage that starts from another stage was made there.
  const from = instruction.name === "FROM" ? await job.stages.baseOf(instruction) : before;
  const record = recordStep(describeStep(step, since, job.services.clock), from, state);
  records.push(record);
  job.emit({ type: "step-end", record });
  return state;
}

/** Sends new contents of the context if the service takes long to find or import the image. */
async function meanwhile<Result>(find: () => Promise<Result>, job: BuildJob): Promise<Result> {
  if (job.services.layers.hasOthers) return find();
  const found = new AbortController();
  job.services.clock.sleep(promptMilliseconds, found.signal).then(
    () => job.eagerUploads.markNew(),
    () => undefined,
  );
  return find().finally(() => found.abort());
}

/** Reports at once that the step has failed. The error itself is thrown only after the other stages have ended. */
async function withFailure<Result>(
  job: BuildJob,
  instruction: Instruction,
  action: () => Promise<Result>,
): Promise<Result> {
  try {
    return await withLocation(job.asked, instruction, action);
  } catch (error) {
    const abandonment = abandonmentOf(job.services.signal);
    const isInterrupted = job.services.signal.aborted && abandonment.abandoned !== true;
    // A step whose image is lost is performed again.
    if (!isInterrupted && !(error instanceof EvictedImageError))
      job.emit({ type: "step-failed", title: titleOf(instruction), ...abandonment });
    throw error;
  }
}

async function inSlot<Result>(
  { takeSlot }: Pick<RunningStages, "takeSlot">,
  action: () => Promise<Result>,
): Promise<Result> {
  const release = await takeSlot();
  try {
    return await action();
  } finally {
    release();
  }
}

function describeStep({ stage, step, instruction }: PlacedInstruction, since: number, clock: Clock) {
  const seconds = (steadyTime(clock) - since) / 1000;
  return { stage, step, line: instruction.range.start, instruction: titleOf(instruction), seconds };
}
