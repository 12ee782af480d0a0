import type { BuildEvent, StepEvent } from "../../builder/events.ts";
import type { StepPlace } from "../../builder/step-place.ts";
import type { ServedTime } from "../../service/service.ts";
import { formatCount } from "../quantity.ts";
import { createServedTimes, type RequestRecorder } from "./requests.ts";
import type { ActivitySpan, RecordedBuild, Span, StepSpan } from "./spans.ts";

/** Records the durations of a build's parts from its events. */
interface Timeline {
  note(event: BuildEvent): void;
  /** Adds an operation that has just ended. */
  noteServed(time: ServedTime): void;
  /** Returns the record. Steps that still run end now, as unfinished. `seconds`: see `RecordedBuild`. */
  end(seconds: number | undefined): RecordedBuild;
}

type Open<Span> = { -readonly [Key in keyof Span]: Span[Key] } & { isOpen: boolean };
type PlacedEvent = StepEvent & StepPlace;

interface StepAtWork {
  span: Open<StepSpan>;
  activity: Open<ActivitySpan> | undefined;
  /** True for work after a stage's last instruction, whose end has no event. */
  isRest: boolean;
}

/** Creates a timeline. `now`: milliseconds since the epoch, with fractions. */
export function createTimeline(now: () => number, requests: RequestRecorder): Timeline {
  const start = now();
  const steps: Open<StepSpan>[] = [];
  const activities: Open<ActivitySpan>[] = [];
  const served = createServedTimes(start, requests);
  /** Steps by number. */
  const atWork = new Map<number, StepAtWork>();

  function beginStep(span: Omit<StepSpan, "start" | "end">, isRest: boolean): StepAtWork {
    const opened = { ...span, start: now(), end: Number.NaN, isOpen: true };
    steps.push(opened);
    const step = { span: opened, activity: undefined, isRest };
    atWork.set(span.step, step);
    return step;
  }

  function endActivity(step: StepAtWork, details: object): void {
    const { activity } = step;
    if (activity === undefined) return;
    Object.assign(activity, { end: now(), isOpen: false, details: { ...activity.details, ...details } });
    step.activity = undefined;
  }

  function endStep(step: StepAtWork, details: object): void {
    const { span } = step;
    Object.assign(span, { end: now(), isOpen: false, details: { ...span.details, ...details } });
  }

  /** Returns the step of an event; after its end, the step for the remaining work. */
  function stepOf(event: PlacedEvent): StepAtWork | undefined {
    const known = atWork.get(event.step);
    if (known === undefined || known.span.isOpen || beginActivity(event) === undefined) return known;
    const { name, start: _, end: __, isOpen: ___, ...place } = known.span;
    return beginStep({ ...place, name: `layer of the staged files, ${name}`, needs: [], details: {} }, true);
  }

  function note(event: PlacedEvent): void {
    if (event.type === "step") {
      const { stage, step, instruction, steps: all, inStage, needs = [] } = event;
      const { line, title: name } = instruction;
      const place = { stage, step, line, steps: all, inStage, needs };
      beginStep({ ...place, name, details: {} }, false);
      return;
    }
    const step = stepOf(event);
    if (step === undefined || !step.span.isOpen) return;
    if (!continuesActivity(event)) endActivity(step, describeEnd(event));
    served.note(event, now());
    const begun = beginActivity(event);
    if (begun !== undefined) {
      const { stage, step: number } = event;
      step.activity = { stage, step: number, ...begun, start: now(), end: Number.NaN, isOpen: true };
      activities.push(step.activity);
    }
    if (event.type === "step-end") endStep(step, { cached: event.record.cached, layer: event.record.layer });
    else if (event.type === "step-failed")
      endStep(step, event.abandoned ? { abandoned: true } : { failed: true });
    // Any event may be the last one.
    else if (step.isRest) step.span.end = now();
  }

  return {
    note(event) {
      if (event.type === "forgotten-layer") for (const step of atWork.values()) endActivity(step, {});
      if (event.step !== undefined) note(event);
    },
    noteServed: (time) => served.add(time, now()),
    end(seconds) {
      const end = now();
      const close = <Closed extends Open<StepSpan> | Open<ActivitySpan>>({ isOpen, ...span }: Closed) => {
        const isUnfinished = isOpen && Number.isNaN(span.end);
        return isUnfinished ? { ...span, end, details: { ...span.details, unfinished: true } } : span;
      };
      return {
        ...{ start, end, seconds },
        steps: steps.map(close),
        activities: activities.map(close),
        requests: requests.end(end),
        served: served.spans(),
      };
    },
  };
}

type Begun = Pick<Span, "name" | "details">;

/** Returns the activity that a step begins with this event, if any. */
function beginActivity(event: StepEvent): Begun | undefined {
  switch (event.type) {
    case "importing":
      return { name: `import ${event.reference}`, details: { url: event.url } };
    case "hashing":
      return { name: "read files", details: { files: event.files, bytes: event.bytes } };
    case "downloading":
      return { name: "download", details: { url: event.url } };
    case "repository":
      return event.cached ? undefined : { name: "fetch", details: { url: event.url, commit: event.commit } };
    case "uploading":
      return {
        name: `upload ${formatCount(event.files, "file")}`,
        details: { files: event.files, bytes: event.bytes },
      };
    case "spawned":
      return { name: "operation", details: { operation: event.operation, title: event.title } };
    case "resumed":
      return {
        name: "operation",
        details: { operation: event.operation, title: event.title, resumed: true },
      };
    case "cancelling":
      return { name: "cancel", details: { operation: event.operation } };
    default:
      return undefined;
  }
}

/** True if the step's activity continues after this event. */
function continuesActivity({ type }: StepEvent): boolean {
  return continuingTypes.includes(type);
}

const continuingTypes: readonly StepEvent["type"][] = [
  "warning",
  "import-progress",
  "explained",
  "excluded",
  "large-context",
  "hashed",
  "download-progress",
  "upload-progress",
  "forgotten-files",
  "output",
];

/** Returns the details of an activity from the event that ends it. */
function describeEnd(event: StepEvent): object {
  switch (event.type) {
    case "resolved":
      return { image: event.image };
    case "downloaded":
      return { bytes: event.bytes };
    case "url-cache-hit":
      return { cached: true };
    case "repository":
      return { commit: event.commit, cached: event.cached };
    case "uploaded":
      return { sentBytes: event.sentBytes, reused: event.reused };
    case "ran":
      return { succeeded: event.succeeded, outputBytes: event.stdout.bytes + event.stderr.bytes };
    case "cancelled":
      return { confirmed: event.confirmed };
    default:
      return {};
  }
}
