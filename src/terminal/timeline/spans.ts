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
