/** Starting an operation, following it to its end, stopping it. */
import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import { withDeadline } from "./abort.ts";
import type { Answer } from "./answer.ts";
import { NotFoundError, UnknownOutcomeError } from "./errors.ts";
import { createEventLog, type EventLog, mergeOutput } from "./event-log.ts";
import { followEvents } from "./events.ts";
import { asRecord, asText } from "./json.ts";
import { lookAtOperation, operationPath, type PollingOptions, pollUntilEnded } from "./polling.ts";
import type { ImageService, OperationOutcome, OutputChunk } from "./service.ts";
import type { ServiceNotice, Transport } from "./transport.ts";
import type { InstanceRequest, OperationKind } from "./types.ts";

export interface OperationsOptions {
  transport: Transport;
  clock: Clock;
  signal: AbortSignal;
  onNotice: (notice: ServiceNotice) => void;
}

export interface Operations extends Pick<ImageService, "spawn" | "follow" | "cancel"> {
  /** As `follow`, by looking alone: there is no output to wait for. */
  poll(operation: string): Promise<OperationOutcome>;
  /** Bounds how long a status that bough does not know is waited for. */
  expect(operation: string, kind: OperationKind, timeoutSeconds: number): void;
}

/** Where the request has a timeout, the service ends the operation by then; this much is left for the ending itself. */
const graceMilliseconds = 60_000;
const defaultTimeoutSeconds = 600;
const cancelMilliseconds = 15_000;
const spawnTimeoutMilliseconds = 120_000;
const spawnGraceMilliseconds = 5000;

export function createOperations(options: OperationsOptions): Operations {
  const { transport, clock, signal } = options;
  const expected = new Map<string, { kind: OperationKind; timeoutSeconds: number }>();
  let hasEvents = true;

  const operations: Operations = {
    expect(operation, kind, timeoutSeconds) {
      expected.set(operation, { kind, timeoutSeconds });
    },

    async spawn(request) {
      const answer = await post(request);
      const operation = operationIdOf(answer);
      if (operation === undefined)
        throw new BoughError("POST /v1/instances answered without the operation's id");
      if (signal.aborted) {
        await operations.cancel(operation);
        throw signal.reason;
      }
      operations.expect(operation, "instance", request.timeout ?? defaultTimeoutSeconds);
      return operation;
    },

    async follow(operation, onOutput, listener) {
      const log = createEventLog(listener);
      if (hasEvents) {
        const report = onOutput ?? ((_: OutputChunk) => undefined);
        const end = await followEvents(options, operation, log, report);
        for (const chunk of log.end()) report(chunk);
        // That imports have none says nothing about instances.
        const isImport = expected.get(operation)?.kind === "image_import";
        if (end === "unsupported" && !isImport) hasEvents = false;
      }
      return await outcomeOf(operation, log);
    },

    poll: (operation) => outcomeOf(operation, createEventLog()),

    async cancel(operation) {
      // Works after an interruption, when the service's own signal is aborted.
      const never = new AbortController().signal;
      try {
        return await withDeadline({ clock, milliseconds: cancelMilliseconds, parent: never }, (own) =>
          cancel({ ...options, signal: own }, operation),
        );
      } catch {
        // The caller is told that the operation may still run; why is of no use to it.
        return false;
      }
    },
  };

  /** From the record, however the end was noticed. */
  async function outcomeOf(operation: string, log: EventLog): Promise<OperationOutcome> {
    const timeoutSeconds = expected.get(operation)?.timeoutSeconds ?? defaultTimeoutSeconds;
    const view = await pollUntilEnded(options, operation, timeoutSeconds * 1000 + graceMilliseconds);
    expected.delete(operation);
    const { error, exitCode, timedOut, image } = view;
    const stdout = mergeOutput(log.output("stdout"), view.stdout);
    const stderr = mergeOutput(log.output("stderr"), view.stderr);
    return { operation, status: view.ended, error, exitCode, timedOut, stdout, stderr, image };
  }

  /**
   * Sent once. An interruption does not break it off at once: only with the operation's id in the answer can what
   * it started be stopped.
   */
  async function post(request: InstanceRequest): Promise<Answer> {
    try {
      return await transport.call({
        method: "POST",
        path: "/v1/instances",
        json: request,
        repeatable: false,
        // Being impatient here means not to know what has happened.
        timeoutMilliseconds: spawnTimeoutMilliseconds,
        graceMilliseconds: spawnGraceMilliseconds,
      });
    } catch (error) {
      if (!(error instanceof UnknownOutcomeError)) throw error;
      throw new UnknownOutcomeError(`${error.message}; it is unknown whether the service runs the command`, {
        hint: "bough does not send it again, for it could run twice. Build again: what is finished is cached.",
        cause: error,
      });
    }
  }

  return operations;
}

/** From the body, else from `Location: /v1/operations/<uuid>`. */
export function operationIdOf(answer: Answer): string | undefined {
  const location = /\/operations\/([^/?#]+)/.exec(answer.headers.get("location") ?? "")?.[1];
  const body = asRecord(answer.body);
  return (
    asText(body?.uuid) ??
    asText(body?.operation_uuid) ??
    (location === undefined ? undefined : decodeURIComponent(location))
  );
}

async function cancel(options: PollingOptions, operation: string): Promise<boolean> {
  const { transport, signal } = options;
  // 409: it has ended already. 404, 405, 501: there is no such operation, or nothing to stop one with.
  const handles = [404, 405, 409, 501];
  const { status } = await transport.call({
    method: "DELETE",
    path: operationPath(operation),
    repeatable: true,
    handles,
    signal,
  });
  if (status === 409) return true;
  if (handles.includes(status)) {
    const look = await lookAtOperation(options, operation).catch((error: unknown) => {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    });
    return look === undefined || look.view.ended !== undefined;
  }
  await pollUntilEnded(options, operation, cancelMilliseconds);
  return true;
}
