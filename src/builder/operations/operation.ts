import { BoughError } from "../../errors.ts";
import { type Message, wording } from "../../messages/wording.ts";
import { type IdleTimer, startIdleTimer } from "../../service/http/deadline.ts";
import { NotFoundError, OverdueError, UnknownOutcomeError } from "../../service/http/errors.ts";
import {
  describeLimitHits,
  refuseMissing,
  requireEnd,
  watchOutput,
} from "../../service/operations/outcome.ts";
import { requestIdOfStep } from "../../service/operations/request-id.ts";
import type { CapturedOutput, OperationOutcome, OutputChunk, RepeatedId } from "../../service/service.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import { unlessStateDiskFull } from "../../state-failure.ts";
import { abandonmentOf, type EmitInStep } from "../events.ts";
import type { BuildJob, BuildServices } from "../job.ts";
import { createOutputCollector } from "./gc.ts";

/** The purpose of an operation. */
export interface OperationStep {
  /** Identifies the operation in the session, for every build that needs exactly this one. */
  key: string;
  /** The instruction, to show; in brackets for operations of bough's own. */
  title: string;
  /** Default true. */
  showsOutput?: boolean;
  /** True if it makes a layer that does not exist yet. */
  makesLayer?: boolean;
}

/** An outcome, with what the command's output tells about it. */
export type FollowedOutcome = OperationOutcome & { reportsDiskFull?: boolean; reportsWrongFormat?: boolean };

/** Bytes of each output stream that the service should keep, enough to show a failing step in full. */
export const outputLimit = 16 * 1024 * 1024;

/** Follows a running operation. Rejects with NotFoundError if the service lacks something that the operation needs. */
export async function followStepOperation(
  operation: string,
  { key, showsOutput = true }: OperationStep,
  build: BuildJob,
): Promise<FollowedOutcome> {
  const { service } = build.services;
  const output = createOutputReporter(operation, build.emit, build.services.signal);
  const warning = showsOutput ? warnBeforeTimeout(build) : undefined;
  const listener = {
    // Layers of the image may have to be fetched first, which does not count for the command.
    onProgress(message: string) {
      warning?.touch();
      build.emit({ type: "import-progress", message });
    },
    onStart: () => warning?.touch(),
    onWarning: (message: string) => build.emit({ type: "warning", message, line: undefined }),
    ...(showsOutput ? { onRest: output.reportRest } : {}),
  };
  const outcome = await service
    .follow(operation, showsOutput ? output.report : undefined, listener, build.asked.commands.timeoutSeconds)
    .catch(async (error: unknown) => {
      const unknown = { truncated: false };
      // The output of a command that hangs shows why.
      if (showsOutput) output.end({ stdout: unknown, stderr: unknown }, false);
      // A build that resumed it would wait as long, to no effect.
      if (error instanceof OverdueError) forgetFailed(key, build);
      if (build.services.signal.aborted) await cancelOperation(operation, key, build);
      throw error instanceof NotFoundError ? missingOperation(operation, error) : error;
    })
    .finally(() => warning?.stop());
  if (!isSuccess(outcome)) forgetFailed(key, build);
  if (showsOutput) output.end(outcome, isSuccess(outcome));
  warnOfLimits(outcome, build);
  refuseMissing(outcome);
  return {
    ...outcome,
    ...(output.reportsDiskFull() && { reportsDiskFull: true }),
    ...(output.reportsWrongFormat() && { reportsWrongFormat: true }),
  };
}

/** A shorter time is one that the user has chosen. */
const minWarnedSeconds = 300;
const remainingSeconds = 60;

/** Warns while something can still be done: the user may start again with more time before the command is lost. */
function warnBeforeTimeout({ services, asked, emit }: BuildJob): IdleTimer | undefined {
  const { timeoutSeconds } = asked.commands;
  if (timeoutSeconds < minWarnedSeconds) return undefined;
  const message = wording`the command is stopped in ${remainingSeconds} seconds, at its limit of ${timeoutSeconds}: ${{ option: "timeout", value: "SECONDS" }} allows more, 0 has no limit`;
  return startIdleTimer(services.clock, (timeoutSeconds - remainingSeconds) * 1000, () =>
    emit({ type: "warning", message, line: undefined }),
  );
}

async function cancelOperation(operation: string, key: string, build: BuildJob): Promise<void> {
  const { service, signal } = build.services;
  const { emit } = build;
  emit({ type: "cancelling", operation, ...abandonmentOf(signal) });
  const confirmed = await service.cancel(operation);
  if (confirmed) forgetFailed(key, build);
  emit({ type: "cancelled", operation, confirmed });
}

type StreamName = OutputChunk["stream"];

/** Reports each part of a command's output once, and the total at its end. */
interface OutputReporter {
  report(chunk: OutputChunk): void;
  reportRest(chunk: OutputChunk): void;
  end(streams: Record<StreamName, Pick<CapturedOutput, "truncated">>, succeeded: boolean): void;
  /** True if a program has reported that no space is left. */
  reportsDiskFull(): boolean;
  /** True if a program was for another machine. */
  reportsWrongFormat(): boolean;
}

export function createOutputReporter(
  operation: string,
  emit: EmitInStep,
  signal: AbortSignal,
): OutputReporter {
  const bytes = { stdout: 0, stderr: 0 };
  const collect = createOutputCollector();
  const watch = watchOutput();
  const count = (chunk: OutputChunk) => {
    const { stream, text } = chunk;
    const length = Buffer.byteLength(text);
    bytes[stream] += length;
    collect(length);
    watch.see(chunk);
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
    reportsDiskFull: watch.reportsDiskFull,
    reportsWrongFormat: watch.reportsWrongFormat,
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

/** Warns if a successful command ran into a limit: its result may be incomplete. */
function warnOfLimits(outcome: OperationOutcome, { emit }: BuildJob): void {
  const hint = describeLimitHits(outcome.limitsHit);
  if (hint === undefined || !isSuccess(outcome)) return;
  const message = wording`the command succeeded, but ran into a limit (operation ${outcome.operation}). ${hint}`;
  emit({ type: "warning", message, line: undefined });
}

/** The operation itself is missing, not something that its request needs: it had been started. */
function missingOperation(operation: string, cause: NotFoundError): UnknownOutcomeError {
  return new UnknownOutcomeError(
    `the service no longer knows operation ${operation}: the result of its command is unknown`,
    { hint: "Build again: finished steps are cached, and this step is run again.", cause },
  );
}

/** Forgets operations whose results are kept or useless, so that no later build needs to find them. */
export function finishOperations(keys: readonly string[], { services, asked }: BuildJob): void {
  services.store.unfinished.finish(asked.session, keys, services.owner.id);
}

/** Forgets an operation without a result. On a full disk the record stays: a later build looks for the operation and finds no result. */
function forgetFailed(key: string, build: BuildJob): void {
  unlessStateDiskFull(() => finishOperations([key], build));
}

export function isSuccess({ status, exitCode, timedOut }: OperationOutcome): boolean {
  return status === "SUCCESS" && !timedOut && (exitCode === undefined || exitCode === 0);
}

/** Starts an instance. Records it before and after the request, so that the operation can be found after a kill at any time. */
export async function startStepOperation(
  request: InstanceRequest,
  { key }: OperationStep,
  build: BuildJob,
): Promise<string> {
  const { service, store, owner, clock, signal } = build.services;
  const { limits } = build.asked.commands;
  const { session } = build.asked;
  const requestId = requestIdOfStep(`${key} ${request.image}`);
  const entry = { session, step: key, owner: owner.id, requestId, startedAt: clock.now() };
  store.unfinished.begin({ ...entry, operation: null });
  try {
    // It starts from the same image each time, so a second run costs time but has the same result.
    const bounds = limits === undefined ? {} : { resources_limits: limits };
    const options = { requestId, repeats: otherOperations(requestId, build.services), mayRunTwice: true };
    const operation = await service.spawn(
      { ...request, ...bounds, truncate_output_at: outputLimit },
      options,
    );
    store.unfinished.setOperation(entry, operation);
    return operation;
  } catch (error) {
    if (!(error instanceof UnknownOutcomeError) && !signal.aborted) forgetFailed(key, build);
    throw error;
  }
}

/** Steps are often run again: their operations have the same request id. */
export function otherOperations(requestId: number, { store }: BuildServices): RepeatedId {
  return { isOfAnother: (operation) => store.unfinished.wasStarted(requestId, operation) };
}

/**
 * Returns the resulting image of a command that exited with 0. Throws for every other outcome. `unexecutable`: mounts that the
 * command can't execute, as messages name them.
 */
export function requireSuccess(
  outcome: FollowedOutcome,
  timeoutSeconds: number,
  unexecutable: readonly string[] = [],
): string {
  const { operation, exitCode, image } = outcome;
  requireEnd(outcome, timeoutSeconds);
  if (exitCode !== undefined && exitCode !== 0) {
    const hint = describeLimitHits(outcome.limitsHit) ?? hintFor(outcome, exitCode, unexecutable);
    throw new BoughError(`the command failed with exit code ${exitCode} (operation ${operation})`, { hint });
  }
  if (image === undefined)
    throw new BoughError(`operation ${operation} succeeded, but the service returned no image`);
  return image;
}

function hintFor(
  { reportsWrongFormat }: FollowedOutcome,
  exitCode: number,
  unexecutable: readonly string[],
): Message | undefined {
  if (reportsWrongFormat === true)
    return wording`A program is for another machine than the one that ran it: qemu-user-static and binfmt-support there run such programs (${{ command: "help", words: ["platforms"] }}).`;
  const hint = exitCodeHints[exitCode];
  if (exitCode !== 126 || unexecutable.length === 0) return hint;
  return `${hint} A --mount needs mode=0755 for that: ${unexecutable.join(", ")}.`;
}

const exitCodeHints: Partial<Record<number, string>> = {
  126: "Exit code 126: a file was found, but can't be executed. Check its mode (COPY --chmod=755).",
  127: "Exit code 127: a program was not found in the image.",
  137: "Exit code 137: the command was killed, often because memory ran out.",
};
