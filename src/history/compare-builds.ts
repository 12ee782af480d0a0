import { stageName } from "../terminal/step-row.ts";
import { type BuildRecord, type BuildStep, countCached, inOrder } from "./build-record.ts";

/** A step in two builds. */
export interface StepChange {
  /** `undefined`: only the other build has the step. */
  before: BuildStep | undefined;
  after: BuildStep | undefined;
  /** Seconds that the later build spent more. */
  seconds: number;
  /** Bytes that its layer adds more; `undefined` if unknown. */
  bytes: number | undefined;
  /** True if the step was in the cache before, and no longer is. */
  isMissed: boolean;
  /** True if the instruction's text differs. */
  isEdited: boolean;
}

export interface BuildComparison {
  seconds: number;
  cachedBefore: Counted;
  cachedAfter: Counted;
  /** The steps in the order of the later build. */
  steps: readonly StepChange[];
}

type Counted = ReturnType<typeof countCached>;

/** Compares two builds of the same thing, step by step. */
export function compareBuilds(before: BuildRecord, after: BuildRecord): BuildComparison {
  return {
    seconds: after.seconds - before.seconds,
    cachedBefore: countCached(before.steps),
    cachedAfter: countCached(after.steps),
    steps: pairSteps(before.steps, after.steps).map(([was, is]) => ({
      before: was,
      after: is,
      seconds: stepSeconds(is) - stepSeconds(was),
      bytes: difference(was, is),
      isMissed: was?.outcome === "cached" && (is?.outcome === "made" || is?.outcome === "failed"),
      isEdited: was !== undefined && is !== undefined && was.title !== is.title,
    })),
  };
}

/** The steps to show: first those that took noticeably longer or shorter, then what else has changed. */
export function shownChanges(comparison: BuildComparison): StepChange[] {
  const times = changedTimes(comparison);
  const others = comparison.steps.filter(
    (change) =>
      !times.includes(change) &&
      (change.isMissed || change.isEdited || !change.before || !change.after || hasOtherSize(change)),
  );
  return [...times, ...others];
}

/** The steps that took noticeably longer or shorter, the largest change first. */
export function changedTimes({ steps }: BuildComparison): StepChange[] {
  return steps
    .filter(
      ({ before, seconds }) => Math.abs(seconds) >= Math.max(minSeconds, stepSeconds(before) * minShare),
    )
    .sort((one, other) => Math.abs(other.seconds) - Math.abs(one.seconds));
}

function hasOtherSize({ before, bytes = 0 }: StepChange): boolean {
  return Math.abs(bytes) >= Math.max(minBytes, (before?.addedBytes ?? 0) * minBytesShare);
}

/** The minimum change of size to show: smaller ones come from logs and time stamps. */
const minBytes = 10_000;
const minBytesShare = 0.01;
/** The minimum change of time to show: smaller ones come from the machine, not the build. */
const minSeconds = 0.1;
const minShare = 0.1;

export function stepSeconds(step: BuildStep | undefined): number {
  return step === undefined ? 0 : (step.end - step.start) / 1000;
}

function difference(before: BuildStep | undefined, after: BuildStep | undefined): number | undefined {
  const [was, is] = [before, after].map((step) => (step === undefined ? 0 : (step.addedBytes ?? undefined)));
  return was === undefined || is === undefined ? undefined : is - was;
}

type Pair = [before: BuildStep | undefined, after: BuildStep | undefined];

/** Pairs the steps of each stage: those of the same text, and between them those of the same instruction, in order. */
function pairSteps(before: readonly BuildStep[], after: readonly BuildStep[]): Pair[] {
  const [was, is] = [byStage(before), byStage(after)];
  const pairs = [...is].flatMap(([stage, steps]) => pairInStage(was.get(stage) ?? [], steps));
  const gone = [...was].flatMap(([stage, steps]) => (is.has(stage) ? [] : steps));
  return [...pairs, ...gone.map((step): Pair => [step, undefined])];
}

function byStage(steps: readonly BuildStep[]): Map<string, BuildStep[]> {
  return Map.groupBy(inOrder(steps), ({ stage }) => (stage === null ? "" : stageName(stage)));
}

function pairInStage(before: readonly BuildStep[], after: readonly BuildStep[]): Pair[] {
  const same = commonTitles(before, after);
  const pairs: Pair[] = [];
  let [was, is] = [0, 0];
  for (const [nextWas, nextIs] of [...same, [before.length, after.length] as const]) {
    pairs.push(...pairBetween(before.slice(was, nextWas), after.slice(is, nextIs)));
    if (nextWas < before.length && nextIs < after.length) pairs.push([before[nextWas], after[nextIs]]);
    [was, is] = [nextWas + 1, nextIs + 1];
  }
  return pairs;
}

/** Pairs steps whose text has changed. */
function pairBetween(before: readonly BuildStep[], after: readonly BuildStep[]): Pair[] {
  const left = [...before];
  const pairs = after.map((step): Pair => {
    const at = left.findIndex(({ instruction }) => instruction === step.instruction);
    return at < 0 ? [undefined, step] : [left.splice(at, 1)[0], step];
  });
  return [...pairs, ...left.map((step): Pair => [step, undefined])];
}

/** Returns the longest common sequence of titles, as pairs of places. */
function commonTitles(
  before: readonly BuildStep[],
  after: readonly BuildStep[],
): (readonly [number, number])[] {
  const width = after.length + 1;
  /** The length of the longest common sequence of what begins at each pair of places. */
  const lengths = new Uint16Array((before.length + 1) * width);
  const at = (was: number, is: number) => lengths[was * width + is] ?? 0;
  for (let was = before.length - 1; was >= 0; was--)
    for (let is = after.length - 1; is >= 0; is--)
      lengths[was * width + is] =
        before[was]?.title === after[is]?.title
          ? at(was + 1, is + 1) + 1
          : Math.max(at(was + 1, is), at(was, is + 1));
  const found: (readonly [number, number])[] = [];
  for (let was = 0, is = 0; was < before.length && is < after.length; ) {
    if (before[was]?.title === after[is]?.title) {
      found.push([was, is]);
      was++;
      is++;
    } else if (at(was + 1, is) >= at(was, is + 1)) was++;
    else is++;
  }
  return found;
}
