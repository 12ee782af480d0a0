import type { LargeContext } from "../context/sources/large-context.ts";
import type { Instruction } from "../dockerfile/instruction.ts";
import type { OutputChunk } from "../service/service.ts";
import type { Explanation } from "./cache/explain.ts";
import type { SharedFrom } from "./cache/layer-cache.ts";
import type { BuildResult, StepRecord } from "./result.ts";
import type { StepPlace } from "./step-place.ts";

/** What a build reports while it goes on. `terminal/` decides what a person or a program sees of it. */
export type BuildEvent = (StepEvent & StepPlace) | ((Warning | WideEvent) & NoPlace);

/** What the performing of one instruction reports. */
export type StepEvent =
  /**
   * `inStage`: where the build is shown by its stages, as those of several are at work at once. `needs`: indexes of the
   * stages whose ends the step has waited for.
   */
  | {
      type: "step";
      instruction: ShownInstruction;
      steps: number;
      inStage?: StepInStage;
      needs?: readonly number[];
    }
  | { type: "step-end"; record: StepRecord }
  /** The last event of a step that fails. Why it does is the build's error, which comes once the other stages have ended. */
  | { type: "step-failed"; title: string; abandoned?: true }
  | Warning
  | { type: "resolved"; reference: string; image: string }
  | { type: "importing"; reference: string; url: string }
  /** What the service says of an import that goes on. */
  | { type: "import-progress"; message: string }
  | { type: "cached"; title: string; layer: string; image: string; from?: SharedFrom }
  /** Why a step is not taken from the cache, for those who ask. */
  | {
      type: "explained";
      title: string;
      line: number;
      explanation: Explanation;
      /** Differences to where the layer could have come from. */
      shared?: { scope: string; explanation: Explanation };
    }
  /** Default excludes leave these out of a COPY or ADD: paths in the context, the most surprising first. */
  | { type: "excluded"; title: string; line: number; paths: readonly string[] }
  /** A COPY or ADD takes more from the context than was likely meant. */
  | ({ type: "large-context"; title: string; line: number } & LargeContext)
  /** The total of an instruction's files; `hashed` follows, again and again, with how far it has come. */
  | { type: "hashing"; files: number; bytes: number }
  | { type: "hashed"; files: number; bytes: number }
  | { type: "staged"; title: string; files: number; bytes: number }
  | { type: "downloading"; url: string }
  /** `total`: where the server says it. */
  | { type: "download-progress"; bytes: number; total: number | undefined }
  | { type: "downloaded"; url: string; bytes: number; sha256: string }
  | { type: "url-cache-hit"; url: string }
  /** What an address of a git repository means now. `cached`: what the commit comes to is known; else it is fetched. */
  | { type: "repository"; url: string; ref: string | undefined; commit: string; cached: boolean }
  | { type: "uploading"; files: number; bytes: number }
  | { type: "upload-progress"; files: number; sentBytes: number; reused: number }
  | { type: "uploaded"; files: number; sentBytes: number; reused: number }
  | { type: "forgotten-files"; files: number }
  | { type: "spawned"; operation: string; title: string }
  /** An operation of an earlier build, which was ended before it. */
  | { type: "resumed"; operation: string; title: string }
  /** `isRest`: it did not come while the command ran, but is what its record has beyond that. */
  | { type: "output"; chunk: OutputChunk; isRest?: true }
  | ({ type: "ran" } & Ran)
  | { type: "cancelling"; operation: string; abandoned?: true }
  | { type: "cancelled"; operation: string; confirmed: boolean };

/** What is shown of an instruction. */
export interface ShownInstruction {
  name: Instruction["name"];
  line: number;
  /** See `titleOf`. */
  title: string;
  /** COPY's. */
  from?: string;
}

/** The 2 and the 5 of `[build 2/5]`. */
export interface StepInStage {
  step: number;
  steps: number;
}

/** What belongs to no instruction. */
type WideEvent =
  /** The build begins again, before the step that made the layer. */
  | { type: "forgotten-layer"; layer: string; image: string }
  | { type: "tagged"; image: string; tag: string }
  /** Timings for programs; people get bars. */
  | { type: "timings"; timings: object }
  | { type: "finished"; result: BuildResult };

/** `rule`: its name for `# check=skip=`, where it has one. */
interface Warning {
  type: "warning";
  rule?: string;
  message: string;
  line: number | undefined;
}

/** A warning without one is of the command line, or of a line that is not an instruction. */
interface NoPlace {
  stage?: undefined;
  step?: undefined;
}

/** A command is over, or nobody waits for it any more. All of its output has been told before, as far as there is any. */
export interface Ran {
  operation: string;
  /** Its exit code is 0, and it was not stopped. */
  succeeded: boolean;
  /** It was ended since another stage has failed, which is what there is to tell. */
  abandoned?: true;
  stdout: OutputSummary;
  stderr: OutputSummary;
}

export interface OutputSummary {
  /** Bytes of UTF-8 that have been told. */
  bytes: number;
  /** The service has not kept all of it. */
  truncated: boolean;
}

export type Emit = (event: BuildEvent) => void;
export type EmitInStep = (event: StepEvent) => void;

/** `emit`, bound to a step: whoever performs it need not know where it stands. */
export function emitFor({ stage, step }: StepPlace, emit: Emit): EmitInStep {
  const place = { stage, step };
  return (event) => emit({ ...event, ...place });
}
