import type { BuildEvent, StepEvent, StepInStage } from "../builder/events.ts";
import type { StepPlace } from "../builder/step-place.ts";
import { appendOutput, emptyTail, type OutputTail } from "./output/held-output.ts";
import { formatBytes, formatCount, formatPart } from "./quantity.ts";

/** The state of the live view: running and just finished steps by number, the one with the latest event last. */
export type LiveState = ReadonlyMap<number, LiveStep>;

/** A step, its activity, and the end of its command's output. */
export interface LiveStep {
  stage: StepPlace["stage"];
  step: number;
  steps: number;
  inStage: StepInStage | undefined;
  title: string;
  since: number;
  isOver: boolean;
  /** True after its end, while its stage still has work, such as making a layer for the files of its last COPY. */
  hasEnded: boolean;
  activity: Activity | undefined;
  /** The result of a COPY or ADD: `2 files, 41 kB`. */
  note: string | undefined;
  tail: OutputTail;
}

type Activity =
  | { kind: "text"; text: string }
  /** `verb`: `uploading`. */
  | { kind: "amount"; verb: string; files: Amount | undefined; bytes: Amount; since: number };

interface Amount {
  done: number;
  /** `undefined` if unknown. */
  total: number | undefined;
}

export const startLiveState: LiveState = new Map();

/** Returns the steps to show, the oldest first. A finished step is shown only while none runs, as at the end of a build. */
export function shownSteps(state: LiveState): LiveStep[] {
  const steps = [...state.values()];
  const running = steps.filter(({ isOver }) => !isOver);
  return (running.length === 0 ? steps.slice(-1) : running).sort((one, other) => one.since - other.since);
}

/** Returns the state after an event. `now`: milliseconds since the epoch. */
export function applyEvent(state: LiveState, event: BuildEvent, now: number): LiveState {
  if (event.type === "forgotten-layer") return startLiveState;
  if (event.step === undefined) return state;
  if (event.type === "step") {
    const { stage, step, steps, inStage, instruction } = event;
    const running = [...state].filter(([, { isOver }]) => !isOver);
    const { title } = instruction;
    const activity = firstActivity(event);
    const place = { stage, step, steps, inStage };
    const shown = { ...place, title, since: now, isOver: false, hasEnded: false };
    return new Map(running).set(step, { ...shown, activity, note: undefined, tail: emptyTail });
  }
  const step = state.get(event.step);
  if (step === undefined) return state;
  const others = [...state].filter(([number]) => number !== event.step);
  return new Map(others).set(event.step, applyToStep(step, event, now));
}

function applyToStep(step: LiveStep, event: StepEvent, now: number): LiveStep {
  const hasEnded = step.hasEnded || event.type === "step-end";
  const state = { ...step, hasEnded, isOver: isLast(event, hasEnded) };
  const text = (text: string): LiveStep => ({ ...state, activity: { kind: "text", text } });
  const amount = (verb: string, bytes: Amount, files?: Amount): LiveStep => ({
    ...state,
    activity: { kind: "amount", verb, files, bytes, since: now },
  });
  switch (event.type) {
    case "importing":
      return text(`importing ${event.url}`);
    case "import-progress":
      return text(event.message);
    case "hashing":
      return amount("hashing", { done: 0, total: event.bytes }, { done: 0, total: event.files });
    case "downloading":
      return amount(`downloading ${event.url}:`, { done: 0, total: undefined });
    case "repository":
      return event.cached ? state : text(`fetching ${event.url}`);
    case "uploading":
      return amount("uploading", { done: 0, total: event.bytes }, { done: 0, total: event.files });
    case "hashed":
      return advance(state, event.bytes, event.files);
    case "upload-progress":
      return advance(state, event.sentBytes, event.files);
    case "download-progress":
      return advance(state, event.bytes, undefined, event.total);
    case "spawned":
    case "resumed":
      return { ...state, activity: undefined, tail: emptyTail };
    case "output":
      return { ...state, activity: undefined, tail: appendOutput(state.tail, event.chunk) };
    case "cancelling":
      return { ...text("cancelling"), tail: emptyTail };
    case "staged": {
      const note = `${formatCount(event.files, "file")}, ${formatBytes(event.bytes)}`;
      return { ...state, activity: undefined, note, tail: emptyTail };
    }
    case "downloaded":
    case "uploaded":
    case "resolved":
    case "cached":
    case "ran":
    case "cancelled":
    case "step-end":
    case "step-failed":
      return { ...state, activity: undefined, tail: emptyTail };
    case "step":
    case "warning":
    case "large-context":
    case "excluded":
    case "explained":
    case "url-cache-hit":
    case "forgotten-files":
      return state;
  }
}

/** True if the event ends the step, or the remaining work of its stage. */
function isLast(event: StepEvent, hasEnded: boolean): boolean {
  switch (event.type) {
    case "step-end":
    case "step-failed":
      return true;
    case "ran":
      // A failed command ends its step; after it only other stages run on.
      return hasEnded || !event.succeeded;
    case "cached":
      return hasEnded;
    default:
      return false;
  }
}

/** Describes an activity: `uploading 3 of 10 files, 1.2 MB of 4.0 MB (30%), 600 kB/s`. */
export function describeActivity(activity: Activity, now: number): string {
  if (activity.kind === "text") return activity.text;
  const { verb, files, bytes, since } = activity;
  const ofTotal = ({ done, total }: Amount) => (total === undefined ? String(done) : `${done} of ${total}`);
  const counts = files === undefined ? [] : [`${ofTotal(files)} files`];
  const amount = bytes.total === undefined ? formatBytes(bytes.done) : formatPart(bytes.done, bytes.total);
  const seconds = (now - since) / 1000;
  const rate = bytes.done === 0 || seconds <= 0 ? [] : [`${formatBytes(bytes.done / seconds)}/s`];
  return `${verb} ${[...counts, amount, ...rate].join(", ")}`;
}

function firstActivity({ instruction }: Extract<StepEvent, { type: "step" }>): Activity | undefined {
  const { name, from } = instruction;
  if (name === "FROM") return { kind: "text", text: "looking for the image" };
  if (name !== "COPY" && name !== "ADD") return undefined;
  const text = from === undefined ? "looking through the build context" : `copying from ${from}`;
  return { kind: "text", text };
}

function advance(state: LiveStep, bytes: number, files?: number, totalBytes?: number): LiveStep {
  const { activity } = state;
  if (activity?.kind !== "amount") return state;
  return {
    ...state,
    activity: {
      ...activity,
      bytes: { done: bytes, total: totalBytes ?? activity.bytes.total },
      files: files === undefined ? activity.files : { done: files, total: activity.files?.total },
    },
  };
}
