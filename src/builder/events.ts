import type { LargeContext } from "../context/sources/large-context.ts";
import type { Instruction } from "../dockerfile/instruction.ts";
import { BoughError } from "../errors.ts";
import type { Message } from "../messages/wording.ts";
import type { OutputChunk } from "../service/service.ts";
import type { Explanation } from "./cache/step-difference.ts";
import type { BuildResult, StepRecord } from "./result.ts";
import type { SharedFrom } from "./state/layer.ts";
import type { StepPlace } from "./step-place.ts";

/** An event that a build reports while it runs. `terminal/` decides how a person or a program sees it. */
export type BuildEvent = ((StepEvent & StepPlace) | ((Warning | WideEvent) & NoPlace)) & {
  /** The name of the build, if several run at once. */
  target?: string;
};

/** An event that one instruction reports while it is performed. */
export type StepEvent =
  /**
   * `inStage`: given if the build is shown by stage, because several may run at once. `needs`: indexes of the stages that the
   * step has waited for.
   */
  | {
      type: "step";
      instruction: ShownInstruction;
      steps: number;
      inStage?: StepInStage;
      needs?: readonly number[];
      counted?: CountedAsDocker;
    }
  | { type: "step-end"; record: StepRecord }
  /** The last event of a step that fails. The reason is the build's error, which comes once the other stages have ended. */
  | { type: "step-failed"; title: string; abandoned?: true }
  | Warning
  | { type: "resolved"; reference: string; image: string }
  | { type: "importing"; reference: string; url: string }
  /** Progress of an import, in the service's words. */
  | { type: "import-progress"; message: string }
  | { type: "cached"; title: string; layer: string; image: string; from?: SharedFrom }
  /** The reason why a step is not taken from the cache (`--explain`). */
  | {
      type: "explained";
      title: string;
      line: number;
      explanation: Explanation;
      /** The difference from the layer that a scope has for this step. */
      shared?: { scope: string; explanation: Explanation };
    }
  /** Paths in the context that the default excludes leave out of a COPY or ADD, the most surprising first. */
  | { type: "excluded"; title: string; line: number; paths: readonly string[] }
  /** A COPY or ADD takes more from a context than the user probably meant. `context`: the name of a `--build-context`. */
  | ({ type: "large-context"; title: string; line: number; context?: string } & LargeContext)
  /** The total of an instruction's files. `hashed` follows repeatedly and reports the progress. */
  | { type: "hashing"; files: number; bytes: number }
  | { type: "hashed"; files: number; bytes: number }
  | { type: "staged"; title: string; files: number; bytes: number }
  | { type: "downloading"; url: string }
  /** `total`: `undefined` if the server does not send it. */
  | { type: "download-progress"; bytes: number; total: number | undefined }
  | { type: "downloaded"; url: string; bytes: number; sha256: string }
  | { type: "url-cache-hit"; url: string }
  /** The commit that an address of a git repository resolves to. `cached`: its files are known; else it is fetched. */
  | { type: "repository"; url: string; ref: string | undefined; commit: string; cached: boolean }
  | { type: "uploading"; files: number; bytes: number }
  | { type: "upload-progress"; files: number; sentBytes: number; reused: number }
  | { type: "uploaded"; files: number; sentBytes: number; reused: number }
  | { type: "forgotten-files"; files: number }
  | { type: "spawned"; operation: string; title: string }
  /** The build continues to follow an operation that an earlier build has left behind. */
  | { type: "resumed"; operation: string; title: string }
  /** `isRest`: the chunk did not arrive while the command ran; it is the rest that the operation's record has. */
  | { type: "output"; chunk: OutputChunk; isRest?: true }
  | ({ type: "ran" } & Ran)
  | { type: "cancelling"; operation: string; abandoned?: true }
  | { type: "cancelled"; operation: string; confirmed: boolean };

/** The parts of an instruction that events show. */
export interface ShownInstruction {
  name: Instruction["name"];
  line: number;
  /** See `titleOf`. */
  title: string;
  /** The flag of COPY. */
  from?: string;
}

/** The 2 and the 5 of `[build 2/5]`. */
export interface StepInStage {
  step: number;
  steps: number;
}

/**
 * A step's place as BuildKit counts: only images of FROM, and what makes a layer. `label`: the platform, if there are several, and
 * the stage's name, unless it is the only one.
 */
export interface CountedAsDocker extends StepInStage {
  label: string;
}

/** Events that belong to no instruction. */
type WideEvent =
  /** The build starts again, before the step that made the layer. */
  | { type: "forgotten-layer"; layer: string; image: string }
  /** `service`: the address of the service that has the image, if the build uses several. */
  | { type: "tagged"; image: string; tag: string; service?: string }
  /** Timings for programs; people see bars. */
  | { type: "timings"; timings: object }
  | { type: "finished"; result: BuildResult };

/** `rule`: its name for `# check=skip=`, if it has one. */
interface Warning {
  type: "warning";
  rule?: string;
  message: Message;
  line: number | undefined;
  /** The files that the image lacks for this reason, although Docker's has them. */
  leavesOut?: string;
  /** The instruction that a build without `--docker` skips. */
  skipped?: string;
}

/** The place of an event that belongs to no instruction. */
interface NoPlace {
  stage?: undefined;
  step?: undefined;
}

/** A command has ended, or the build has stopped waiting for it. All of its output that could be had has been reported before. */
export interface Ran {
  operation: string;
  /** True if its exit code is 0 and it was not stopped. */
  succeeded: boolean;
  /** Set if it was ended because another stage had failed, which is the error to report. */
  abandoned?: true;
  stdout: OutputSummary;
  stderr: OutputSummary;
}

interface OutputSummary {
  /** Bytes of UTF-8 that have been reported. */
  bytes: number;
  /** True if the service has not kept all of it. */
  truncated: boolean;
}

export type Emit = (event: BuildEvent) => void;
export type EmitInStep = (event: StepEvent) => void;

/** Binds `emit` to a step, so that the code that performs it need not know its place. */
export function emitFor({ stage, step }: StepPlace, emit: Emit): EmitInStep {
  const place = { stage, step };
  return (event) => emit({ ...event, ...place });
}

/** The abort reason of a stage's signal after another stage has failed. The build's error is that of the failed stage. */
export class AbandonedError extends BoughError {
  override readonly name = "AbandonedError";

  constructor() {
    super("another stage has failed", { kind: "interrupted" });
  }
}

/** Returns `abandoned` for the last events of a step that ends because another stage has failed. */
export function abandonmentOf({ aborted, reason }: AbortSignal): { abandoned?: true } {
  return aborted && reason instanceof AbandonedError ? { abandoned: true } : {};
}
