import type { StepInStage } from "../../builder/events.ts";
import type { StepPlace } from "../../builder/step-place.ts";

/** A period of time. Milliseconds since the epoch, with fractions. */
export interface Span {
  name: string;
  start: number;
  end: number;
  /** Further details for a trace. */
  details: Readonly<Record<string, unknown>>;
}

/** The time of an instruction, or of a stage's work after its last instruction, which has that one's number. */
export interface StepSpan extends Span, StepPlace {
  line: number;
  /** The number of steps in the whole Dockerfile. */
  steps: number;
  inStage: StepInStage | undefined;
  /** Indexes of the stages that it waited for. */
  needs: readonly number[];
}

/** The time of a step's activity: an import, an upload, an operation. */
export interface ActivitySpan extends Span, StepPlace {}

/** The times of a build. */
export interface RecordedBuild {
  start: number;
  end: number;
  /** The time that the build's summary gives; `undefined` if it has none, as after a failure. */
  seconds: number | undefined;
  steps: readonly StepSpan[];
  activities: readonly ActivitySpan[];
  /** Requests to the service, each until the head of its response. */
  requests: readonly Span[];
  /** The times during which the service ran operations. */
  served: readonly Span[];
}

/** The maximum time from the end of a span to the start of one that waited for it. */
const handoverMilliseconds = 20;

/**
 * Returns the steps that determine the build's duration, in order. Each waited for the end of the one before, because it needs
 * its result or its slot (`--jobs`). Making any other step faster does not shorten the build. If a step has failed, they lead to that one:
 * what runs beside it is only stopped.
 */
export function findCriticalPath<Step extends StepSpan>(steps: readonly Step[]): Step[] {
  const path: Step[] = [];
  let next = steps.find(({ details }) => details.failed === true) ?? lastOf(steps);
  while (next !== undefined && !path.includes(next)) {
    path.unshift(next);
    next = blockerOf(next, steps);
  }
  return path;
}

/** Returns the step whose result or slot another one waited for. */
export function blockerOf<Step extends StepSpan>(step: Step, steps: readonly Step[]): Step | undefined {
  const place = steps.indexOf(step);
  // Of steps without duration at the same moment, each is after those that are before it in the list.
  const before = steps.filter(
    (other, at) => other.end <= step.start && (other.start < step.start || at < place),
  );
  const needed = lastOf(
    before.filter(
      ({ stage }) => stage?.index === step.stage?.index || step.needs.includes(stage?.index ?? -1),
    ),
  );
  const last = lastOf(before);
  if (needed === undefined || last === undefined) return last;
  const hasWaited = step.start - needed.end > handoverMilliseconds;
  return hasWaited && step.start - last.end <= handoverMilliseconds ? last : needed;
}

/** Returns the step that ended last. */
export function lastOf<Step extends StepSpan>(steps: readonly Step[]): Step | undefined {
  return steps.reduce<Step | undefined>(
    (last, step) => (last === undefined || step.end >= last.end ? step : last),
    undefined,
  );
}

type Recorded = Pick<RecordedBuild, "requests" | "activities">;

/**
 * Returns for each request what it waited for: the request or activity that ended last before it began. Nothing if that was long
 * before.
 */
export function findWaits(build: Recorded): Map<Span, Span> {
  const ended = inOrderOfEnds(build);
  const waits = new Map<Span, Span>();
  for (const request of build.requests) {
    const last = countEndedBefore(request, ended) - 1;
    // A request without duration has ended when it begins.
    const before = ended[last] === request ? ended[last - 1] : ended[last];
    if (before !== undefined && request.start - before.end <= handoverMilliseconds)
      waits.set(request, before);
  }
  return waits;
}

/**
 * Returns the requests and activities that followed one another up to the last one's end. All others ran beside these, and took no
 * additional time.
 */
export function findChain(build: Recorded): Span[] {
  const ended = inOrderOfEnds(build);
  const chain: Span[] = [];
  let next = ended.at(-1);
  while (next !== undefined) {
    chain.unshift(next);
    // A span without duration ends where it begins: only what comes before it in the order can be next.
    ended.length = Math.min(countEndedBefore(next, ended), ended.indexOf(next));
    next = ended.at(-1);
  }
  return chain;
}

function inOrderOfEnds({ requests, activities }: Recorded): Span[] {
  return [...activities, ...requests].sort((one, other) => one.end - other.end);
}

/** Returns the number of spans, in the order of their ends, that ended before another began. */
function countEndedBefore({ start }: Span, ended: readonly Span[]): number {
  let [low, high] = [0, ended.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ended[middle]?.end ?? 0) <= start) low = middle + 1;
    else high = middle;
  }
  return low;
}
