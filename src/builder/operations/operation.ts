import { BoughError } from "../../errors.ts";
import { NotFoundError, OverdueError, UnknownOutcomeError } from "../../service/http/errors.ts";
import { watchForDiskFull } from "../../service/operations/disk-full.ts";
import { describeLimitHits } from "../../service/operations/limits.ts";
import { refuseMissing, requireEnd } from "../../service/operations/outcome.ts";
import type { CapturedOutput, OperationOutcome, OutputChunk } from "../../service/service.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import type { EmitInStep } from "../events.ts";
import type { BuildJob } from "../job.ts";
import { abandonmentOf } from "../stages/abandoned.ts";
import { createOutputCollector } from "../staging/gc.ts";

/** What an operation is for. */
export interface OperationStep {
  /** Tells it from all others of the session, in every build that needs the very same one. */
  key: string;
  /** An instruction, for people; in brackets what bough does by itself. */
  title: string;
  /** Default true. */
  showsOutput?: boolean;
  /** It is run for a layer that is not there yet. */
  makesLayer?: boolean;
}

/** An outcome, and what the command's output says of it. */
export type FollowedOutcome = OperationOutcome & { saysDiskFull?: boolean };

/** Bytes of each output stream that the service is asked to keep: a failing step is shown in full. */
export const outputLimit = 16 * 1024 * 1024;

/** Follows an operation that runs. Rejects with NotFoundError where the service lacks what the operation needs. */
export async function followOperation(
  operation: string,
  { key, showsOutput = true }: OperationStep,
  build: BuildJob,
): Promise<FollowedOutcome> {
  const { service } = build;
  const output = createOutputReporter(operation, build);
  const listener = showsOutput ? { onRest: output.reportRest } : undefined;
  const outcome = await service
    .follow(operation, showsOutput ? output.report : undefined, listener, build.timeoutSeconds)
    .catch(async (error: unknown) => {
      const unknown = { truncated: false };
      // What a command has said before it hung is what tells why.
      if (showsOutput) output.end({ stdout: unknown, stderr: unknown }, false);
      // Another build that goes on with it would wait as long, for as little.
      if (error instanceof OverdueError) finishOperations([key], build);
      if (build.signal.aborted) await cancelOperation(operation, key, build);
      throw error instanceof NotFoundError ? missingOperation(operation, error) : error;
    });
  if (!isSuccess(outcome)) finishOperations([key], build);
  if (showsOutput) output.end(outcome, isSuccess(outcome));
  warnOfLimits(outcome, build);
  refuseMissing(outcome);
  return output.saysDiskFull() ? { ...outcome, saysDiskFull: true } : outcome;
}

async function cancelOperation(operation: string, key: string, build: BuildJob): Promise<void> {
  const { service, emit, signal } = build;
  emit({ type: "cancelling", operation, ...abandonmentOf(signal) });
  const confirmed = await service.cancel(operation);
  if (confirmed) finishOperations([key], build);
  emit({ type: "cancelled", operation, confirmed });
}

type StreamName = OutputChunk["stream"];

/** Reports what a command writes, each part once, and at its end how much that was. */
interface OutputReporter {
  report(chunk: OutputChunk): void;
  reportRest(chunk: OutputChunk): void;
  end(streams: Record<StreamName, Pick<CapturedOutput, "truncated">>, succeeded: boolean): void;
  /** A program has said that it found no space left. */
  saysDiskFull(): boolean;
}

export function createOutputReporter(
  operation: string,
  { emit, signal }: { emit: EmitInStep; signal: AbortSignal },
): OutputReporter {
  const bytes = { stdout: 0, stderr: 0 };
  const collect = createOutputCollector();
  const disk = watchForDiskFull();
  const count = (chunk: OutputChunk) => {
    const { stream, text } = chunk;
    const length = Buffer.byteLength(text);
    bytes[stream] += length;
    collect(length);
    disk.see(chunk);
  };
  return {
    report(chunk) {
      count(chunk);
      emit({ type: "output", chunk });
    },
    reportRest(chunk) {
      count(chunk);
      emit({ type: "output", chunk, isRest: true });
    },
    saysDiskFull: disk.saysDiskFull,
    end({ stdout, stderr }, succeeded) {
      const summary = (stream: StreamName, truncated: boolean) => ({ bytes: bytes[stream], truncated });
      const streams = {
        stdout: summary("stdout", stdout.truncated),
        stderr: summary("stderr", stderr.truncated),
      };
      emit({ type: "ran", operation, succeeded, ...(succeeded ? {} : abandonmentOf(signal)), ...streams });
    },
  };
}

/** A command that has made do with less, or believes that it has: its result may lack something. */
function warnOfLimits(outcome: OperationOutcome, { emit }: BuildJob): void {
  const hint = describeLimitHits(outcome.limitsHit);
  if (hint === undefined || !isSuccess(outcome)) return;
  const message = `the command succeeded, but ran into a limit (operation ${outcome.operation}). ${hint}`;
  emit({ type: "warning", message, line: undefined });
}

/** The operation itself is missing, not what the request needs: it was started. */
function missingOperation(operation: string, cause: NotFoundError): UnknownOutcomeError {
  return new UnknownOutcomeError(
    `the service no longer knows operation ${operation}: what became of its command is unknown`,
    { hint: "Build again: what is finished is cached, and this step is run anew.", cause },
  );
}

/** What they have come to is kept, or of no use: no later build needs to find them. */
export function finishOperations(keys: readonly string[], { store, session, owner }: BuildJob): void {
  store.unfinished.finish(session, keys, owner.id);
}

export function isSuccess({ status, exitCode, timedOut }: OperationOutcome): boolean {
  return status === "SUCCESS" && !timedOut && (exitCode === undefined || exitCode === 0);
}

/** Starts an instance; written down before and after: a kill at any instant leaves something to find the operation by. */
export async function startOperation(
  request: InstanceRequest,
  { key }: OperationStep,
  build: BuildJob,
): Promise<string> {
  const { service, store, session, owner, clock, signal, limits } = build;
  const entry = { session, step: key, owner: owner.id, requestId: service.newRequestId() };
  store.unfinished.begin({ ...entry, operation: null, startedAt: clock.now() });
  try {
    // It starts from the same image each time: a second run costs time, and the result is the same.
    const bounds = limits === undefined ? {} : { resources_limits: limits };
    const options = { requestId: entry.requestId, mayRunTwice: true };
    const operation = await service.spawn(
      { ...request, ...bounds, truncate_output_at: outputLimit },
      options,
    );
    store.unfinished.setOperation(entry, operation);
    return operation;
  } catch (error) {
    if (!(error instanceof UnknownOutcomeError) && !signal.aborted) finishOperations([key], build);
    throw error;
  }
}

/** The resulting image of a command that was run to its end and exited 0; anything else is an error that says which. */
export function requireSuccess(outcome: OperationOutcome, timeoutSeconds: number): string {
  const { operation, exitCode, image } = outcome;
  requireEnd(outcome, timeoutSeconds);
  if (exitCode !== undefined && exitCode !== 0) {
    const hint = describeLimitHits(outcome.limitsHit) ?? exitCodeHints[exitCode];
    throw new BoughError(
      `the command failed with exit code ${exitCode} (operation ${operation})`,
      hint === undefined ? {} : { hint },
    );
  }
  if (image === undefined)
    throw new BoughError(`operation ${operation} succeeded, but the service names no resulting image`);
  return image;
}

const exitCodeHints: Partial<Record<number, string>> = {
  126: "Exit code 126: a file was found that can't be executed. Is its mode right (COPY --chmod=755)?",
  127: "Exit code 127: a program was not found in the image.",
  137: "Exit code 137: the command was killed, often for want of memory.",
};
