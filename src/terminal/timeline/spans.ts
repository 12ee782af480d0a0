import type { StepInStage } from "../../builder/events.ts";
import type { StepPlace } from "../../builder/step-place.ts";

/** Something that took time. Milliseconds since the epoch, with fractions. */
export interface Span {
  name: string;
  start: number;
  end: number;
  /** What a trace tells of it beside its name. */
  details: Readonly<Record<string, unknown>>;
}

/** An instruction at work; or what a stage had left to do after its last one, which goes by that one's number. */
export interface StepSpan extends Span, StepPlace {
  line: number;
  /** How many steps the whole Dockerfile has. */
  steps: number;
  inStage: StepInStage | undefined;
  /** Indexes of the stages that it has waited for. */
  needs: readonly number[];
}

/** What a step was busy with: an import, files on their way, an operation. */
export interface ActivitySpan extends Span, StepPlace {}

/** What a build has done, and when. */
export interface RecordedBuild {
  start: number;
  end: number;
  steps: readonly StepSpan[];
  activities: readonly ActivitySpan[];
  /** Requests to the service, each until the head of its response. */
  requests: readonly Span[];
  /** The service's own time with operations. */
  served: readonly Span[];
}
