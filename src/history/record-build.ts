import type { BuildEvent, StepEvent } from "../builder/events.ts";
import type { BuildResult, StepRecord } from "../builder/result.ts";
import type { StepPlace } from "../builder/step-place.ts";
import type { StepSpan } from "../terminal/timeline/spans.ts";
import { createTimeline } from "../terminal/timeline/timeline.ts";
import type {
  BuildInput,
  BuildOrigin,
  BuildRecord,
  BuildStatus,
  BuildStep,
  StepOutcome,
} from "./build-record.ts";

/** A build's event without its output, and when it was reported: milliseconds since the epoch, with fractions. */
export interface TimedEvent {
  at: number;
  event: BuildEvent;
}

/** The data of a build that its events don't have. */
interface KnownBuild {
  id: string;
  origin: BuildOrigin;
  start: number;
  now: number;
  status: BuildStatus;
  /** Set if it has succeeded. */
  result?: BuildResult | undefined;
  error?: BuildRecord["error"];
  inputs: readonly BuildInput[];
  /** Characters of the steps' output, by number. */
  outputs: ReadonlyMap<number, { length: number; kept: number }>;
}

type PlacedEvent = StepEvent & StepPlace;

/** Makes the record of a build of its events. */
export function recordBuild(events: readonly TimedEvent[], known: KnownBuild): BuildRecord {
  const { id, origin, start, now, status, result, error, outputs } = known;
  let time = start;
  // No request is recorded.
  const timeline = createTimeline(() => time, {
    watch: (fetch) => fetch,
    lastOf: () => undefined,
    end: () => [],
  });
  const about = new Map<number, AboutStep>();
  const warnings: BuildRecord["warnings"][number][] = [];
  for (const { at, event } of events) {
    time = at;
    timeline.note(event);
    if (event.type === "warning") warnings.push({ message: String(event.message), line: event.line ?? null });
    if (event.step !== undefined) note(about, event);
  }
  time = now;
  const { steps, activities } = timeline.end(undefined);
  const rounded = (moment: number) => Math.max(0, Math.round((moment - start) * 10) / 10);
  // The work after a stage's last instruction has that one's number.
  const isRestOf = (span: StepSpan) => span.name !== about.get(span.step)?.event?.instruction.title;
  const keyOf = (span: StepSpan) => `${span.step} ${isRestOf(span)}`;
  const activitiesOf = Map.groupBy(activities, ({ step }) => step);
  const finishedOf = Map.groupBy(result?.steps ?? [], ({ step }) => step);
  const latest = new Map(steps.map((span) => [keyOf(span), span]));
  // If a step was performed again, its last time counts.
  const recorded = steps
    .filter((span) => latest.get(keyOf(span)) === span)
    .map((span): BuildStep => {
      const { step, stage, line, inStage, needs } = span;
      const { event, end: ended, explained, scope, imports } = about.get(step) ?? {};
      const isRest = isRestOf(span);
      const record = isRest ? undefined : ended;
      const finished = finishedOf.get(step)?.[isRest ? 1 : 0];
      const made = finished ?? record;
      const within = (activitiesOf.get(step) ?? []).filter(
        (each) => each.start >= span.start && each.end <= span.end,
      );
      return {
        ...{
          step,
          steps: span.steps,
          stage,
          inStage: inStage ?? null,
          line,
          title: span.name,
          isRest,
          needs,
        },
        instruction: event?.instruction.name ?? "RUN",
        counted: (!isRest && event?.counted) || null,
        start: rounded(span.start),
        end: rounded(span.end),
        outcome: outcomeOf(span, made, {
          isRest,
          isFound: event?.instruction.name === "FROM" && imports !== true,
        }),
        reason: (!isRest && explained) || null,
        scope: scope ?? null,
        layer: made?.layer ?? null,
        image: made?.image ?? null,
        operation: made?.operation ?? null,
        addedBytes: finished?.addedBytes ?? null,
        uploadedBytes: finished?.uploadedBytes ?? 0,
        activities: within.map((each) => ({
          name: each.name,
          start: rounded(each.start),
          end: rounded(each.end),
        })),
        output: (!isRest && outputs.get(step)) || null,
      };
    });
  return {
    ...{ id, status, startedAt: Math.round(start), seconds: Math.round(now - start) / 1000, origin },
    ...{ steps: recorded, inputs: known.inputs, warnings },
    result: result === undefined ? null : describeResult(result),
    error: error ?? null,
  };
}

/** A step's data from events, besides its times. */
interface AboutStep {
  event?: Extract<PlacedEvent, { type: "step" }>;
  end?: StepRecord;
  explained?: BuildStep["reason"];
  scope?: string;
  imports?: true;
}

function note(about: Map<number, AboutStep>, event: PlacedEvent): void {
  // A step that is performed again begins anew.
  if (event.type === "step") return void about.set(event.step, { event });
  const step = about.getOrInsertComputed(event.step, () => ({}));
  if (event.type === "step-end") step.end = event.record;
  else if (event.type === "importing") step.imports = true;
  else if (event.type === "explained") step.explained = event.explanation;
  else if (event.type === "cached" && event.from !== undefined) step.scope = event.from.scope;
}

function outcomeOf(
  { details }: StepSpan,
  made: Pick<StepRecord, "cached" | "layer"> | undefined,
  /** `isFound`: it is a FROM whose image was there. */
  { isRest, isFound }: { isRest: boolean; isFound: boolean },
): StepOutcome {
  if (details.failed === true) return "failed";
  if (details.abandoned === true || (details.unfinished === true && !isRest)) return "stopped";
  if (made === undefined || made.cached === null) return isRest ? "made" : "done";
  return made.cached || isFound ? "cached" : "made";
}

function describeResult({
  image,
  platforms = [],
  tags,
  exported,
}: BuildResult): NonNullable<BuildRecord["result"]> {
  return {
    image,
    platforms: platforms.map((each) => ({ platform: each.platform, image: each.image })),
    tags,
    exported: exported.map(({ destination, descriptor }) => ({ destination, digest: descriptor.digest })),
  };
}
