/** Reads how an operation has ended, from its events and its record. */
import type { OperationOutcome, ServedTime } from "../service.ts";
import { type OperationKind, operationName } from "../wire/operation.ts";
import { mergeOutput } from "./captured-stream.ts";
import { endedView, endingOf } from "./ending.ts";
import { type PollingOptions, pollUntilEnded } from "./polling.ts";
import type { ReceivedEvents } from "./received-events.ts";
import { readOperation } from "./record.ts";

/** The parts of an operation's request that its outcome is judged by. */
export interface OperationRequest {
  /** The images that it named. A command that changes nothing returns the one it started from. */
  named: readonly string[];
  /** True if the result is kept as an image. */
  isKept: boolean;
}

export interface ExpectedOperation extends Partial<OperationRequest> {
  kind: OperationKind;
  timeoutSeconds: number;
  /** Missing for an operation that another process has started. */
  startedAt?: number;
}

interface OutcomeOptions extends PollingOptions {
  onServed: ((time: ServedTime) => void) | undefined;
  /** Called at the end of each operation that has made an image. */
  onImage: () => void;
  /** Descriptions of what is under way, kept up to date: `operation <id>` for each that is awaited. */
  running: Set<string>;
}

export const defaultTimeoutSeconds = 600;
/** How long past its timeout an operation of unknown status is awaited. */
const unknownStatusMilliseconds = 10_000;
/** Time for a record to be completed. */
const echoMilliseconds = 500;

/** @param expected by operation id; an entry is removed when the operation ends */
export function createOutcomes(options: OutcomeOptions, expected: Map<string, ExpectedOperation>) {
  const { clock, running } = options;
  const { newIds } = options.transport;
  /** True after the warning about exit codes. */
  let hasWarned = false;
  let hasWarnedOfOutput = false;

  /** Reads the outcome from the record, unless that would only repeat much output. */
  async function outcomeOf(
    own: PollingOptions,
    operation: string,
    log: ReceivedEvents,
    onKnown?: (isLate: boolean) => Promise<void>,
  ): Promise<OperationOutcome> {
    const expectation = expected.get(operation) ?? {};
    const {
      timeoutSeconds = defaultTimeoutSeconds,
      startedAt,
      named,
      isKept,
    }: Partial<ExpectedOperation> = expectation;
    const limitMilliseconds = timeoutSeconds * 1000 + unknownStatusMilliseconds;
    const kind = expected.get(operation)?.kind ?? "instance";
    const known = { kind, named, startedAt: startedAt ?? Number.NEGATIVE_INFINITY, onKnown };
    const poll = () => pollUntilEnded(own, operation, limitMilliseconds, known);
    let view = endedView(log, kind) ?? (await poll());
    // Some services report how the process ended only in the events.
    const exit = readOperation({ state: log.exitState });
    const readEnding = () =>
      endingOf(view, { kind, named: named ?? [], exitCode: view.exitCode ?? exit.exitCode });
    let ending = readEnding();
    if (ending.isEcho && kind === "instance" && isKept === true) {
      const text = `operation ${operation} names no new image, only ${ending.image}, which it started from; asking once more`;
      options.onNotice({ level: "warn", text });
      await clock.sleep(echoMilliseconds, own.signal);
      view = await poll();
      ending = readEnding();
    }
    const { served, limitsHit, imageBytes } = view;
    const { status, error, image } = ending;
    if (served !== undefined) options.onServed?.({ operation, kind, ...served });
    if (image !== undefined) {
      if (startedAt !== undefined && named?.includes(image) !== true) newIds.add(image);
      options.onImage();
    }
    expected.delete(operation);
    running.delete(operationName(operation));
    const exitCode = view.exitCode ?? exit.exitCode;
    if (exitCode === undefined && status === "SUCCESS" && kind === "instance") warnOfMissingExitCode();
    if (view.unreadOutput !== undefined && kind === "instance") warnOfUnreadOutput(view.unreadOutput);
    return {
      ...{ operation, status, error, exitCode, image, imageBytes, limitsHit },
      timedOut: view.timedOut || exit.timedOut,
      stdout: mergeOutput(log.output("stdout"), view.stdout),
      stderr: mergeOutput(log.output("stderr"), view.stderr),
      ...(served && { served }),
    };
  }

  function warnOfMissingExitCode(): void {
    if (hasWarned) return;
    hasWarned = true;
    const text =
      "this service reports no exit codes: only an operation's status tells whether its command failed";
    options.onNotice({ level: "warn", text });
  }

  function warnOfUnreadOutput(path: string): void {
    if (hasWarnedOfOutput) return;
    hasWarnedOfOutput = true;
    const text = `this service returns text as ${path}, which bough does not know as output: it is not shown`;
    options.onNotice({ level: "warn", text });
  }

  return { outcomeOf };
}
