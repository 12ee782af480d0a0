import type { StepPlace } from "./step-place.ts";

/** What a build comes to. */
export interface BuildResult {
  image: string;
  /** Complete: `name:tag`. */
  tags: readonly string[];
  session: string;
  steps: readonly FinishedStep[];
  /** What went to the service, from the context and from URLs. */
  uploaded: { files: number; bytes: number };
  /** Lines of each `COPY --from`: what they would have brought is not in the image. */
  skippedCopies: readonly number[];
  seconds: number;
}

/** What became of one instruction; what it says of a layer is null where the instruction makes none. */
export interface StepRecord extends StepPlace {
  /** The line in the Dockerfile. */
  line: number;
  /** The Dockerfile's words, on one line. */
  instruction: string;
  /** Name of its branch: `layer:` and the chain hash. */
  layer: string | null;
  image: string | null;
  /** The operation that made the layer, in this build or an earlier one. */
  operation: string | null;
  cached: boolean | null;
  seconds: number;
}

/** A step, once the build is over. */
export interface FinishedStep extends StepRecord {
  /** What went to the service for it, from the context and from URLs. */
  uploadedBytes: number;
  /** What its layer adds to the image: the room that it takes. Null where there is none, or where the service does not say. */
  addedBytes: number | null;
}
