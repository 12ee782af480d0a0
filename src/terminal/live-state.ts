import type { BuildEvent } from "../builder/events.ts";
import { titleOf } from "../builder/interpreter/location.ts";
import { appendOutput, emptyTail, type OutputTail } from "./output-tail.ts";
import { formatBytes } from "./quantity.ts";

/** What the live view shows: the step at work, what it is doing, and what its command has written. */
export interface LiveState {
  step: { number: number; count: number; title: string; since: number } | undefined;
  activity: Activity | undefined;
  tail: OutputTail;
}

export type Activity =
  | { kind: "text"; text: string }
  /** `verb`: `uploading`. */
  | { kind: "amount"; verb: string; files: Amount | undefined; bytes: Amount; since: number };

export interface Amount {
  done: number;
  /** `undefined`: nobody knows. */
  total: number | undefined;
}

export const startLiveState: LiveState = { step: undefined, activity: undefined, tail: emptyTail };

/** `now`: milliseconds since the epoch. */
export function applyEvent(state: LiveState, event: BuildEvent, now: number): LiveState {
  const text = (text: string): LiveState => ({ ...state, activity: { kind: "text", text } });
  const amount = (verb: string, bytes: Amount, files?: Amount): LiveState => ({
    ...state,
    activity: { kind: "amount", verb, files, bytes, since: now },
  });
  switch (event.type) {
    case "step": {
      const { instruction, step, steps } = event;
      const shown = { number: step, count: steps, title: titleOf(instruction), since: now };
      return { ...startLiveState, step: shown, activity: firstActivity(instruction.name) };
    }
    case "importing":
      return text(`importing ${event.url}`);
    case "import-progress":
      return text(event.message);
    case "hashing":
      return amount("hashing", { done: 0, total: event.bytes }, { done: 0, total: event.files });
    case "downloading":
      return amount(`downloading ${event.url}:`, { done: 0, total: undefined });
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
      return { ...text(`operation ${event.operation} is running`), tail: emptyTail };
    case "output":
      return { ...state, activity: undefined, tail: appendOutput(state.tail, event.chunk) };
    case "cancelling":
      return { ...text(`cancelling operation ${event.operation}`), tail: emptyTail };
    case "staged":
    case "downloaded":
    case "uploaded":
    case "resolved":
    case "cached":
    case "ran":
    case "cancelled":
    case "step-end":
    case "tagged":
    case "finished":
      return { ...state, activity: undefined, tail: emptyTail };
    case "warning":
    case "large-context":
    case "excluded":
    case "explained":
    case "url-cache-hit":
    case "forgotten-files":
    case "forgotten-layer":
      return state;
  }
}

/** `uploading 3 of 10 files, 1.2 MB of 4.0 MB, 600 kB/s` */
export function describeActivity(activity: Activity, now: number): string {
  if (activity.kind === "text") return activity.text;
  const { verb, files, bytes, since } = activity;
  const counts = files === undefined ? [] : [`${ofTotal(files, String)} files`];
  const seconds = (now - since) / 1000;
  const rate = bytes.done === 0 || seconds <= 0 ? [] : [`${formatBytes(bytes.done / seconds)}/s`];
  return `${verb} ${[...counts, ofTotal(bytes, formatBytes), ...rate].join(", ")}`;
}

function firstActivity(name: string): Activity | undefined {
  if (name === "FROM") return { kind: "text", text: "asking the service for the image" };
  if (name === "COPY" || name === "ADD") return { kind: "text", text: "looking through the build context" };
  return undefined;
}

function advance(state: LiveState, bytes: number, files?: number, totalBytes?: number): LiveState {
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

function ofTotal({ done, total }: Amount, format: (value: number) => string): string {
  return total === undefined ? format(done) : `${format(done)} of ${format(total)}`;
}
