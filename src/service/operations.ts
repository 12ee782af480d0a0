/** Starting an operation, following it to its end, stopping it. */
import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import { withDeadline } from "./deadline.ts";
import { UnknownOutcomeError } from "./errors.ts";
import { createEventLog, mergeOutput } from "./event-log.ts";
import { followEvents } from "./events.ts";
import { asRecord, asText } from "./json.ts";
import { lookAtOperation, operationPath, type PollingOptions, pollUntilEnded } from "./polling.ts";
import type { ImageService, OutputChunk } from "./service.ts";
import type { Answer, ServiceNotice, Transport } from "./transport.ts";
import type { InstanceRequest } from "./types.ts";

export interface OperationsOptions {
  transport: Transport;
  clock: Clock;
  signal: AbortSignal;
  onNotice: (notice: ServiceNotice) => void;
}

export interface Operations extends Pick<ImageService, "spawn" | "follow" | "cancel"> {
  /** Bounds how long a status that bough does not know is waited for. */
  expect(operation: string, timeoutSeconds: number): void;
}

/** Where the request has a timeout, the service ends the operation by then; this much is left for the ending itself. */
const graceMilliseconds = 60_000;
const defaultTimeoutSeconds = 600;
const cancelMilliseconds = 15_000;
/** After an interruption: for the answer to a request that is under way, so that what it started can be stopped. */
const spawnGraceMilliseconds = 5000;

export function createOperations(options: OperationsOptions): Operations {
  const { transport, clock, signal } = options;
  const timeouts = new Map<string, number>();
  let hasEvents = true;

  const operations: Operations = {
    expect(operation, timeoutSeconds) {
      timeouts.set(operation, timeoutSeconds);
    },

    async spawn(request) {
      const answer = await answerDespiteInterruption((own) => post(request, own));
      const operation = operationIdOf(answer);
      if (operation === undefined)
        throw new BoughError("POST /v1/instances answered without the operation's id");
      if (signal.aborted) {
        await operations.cancel(operation);
        throw signal.reason;
      }
      operations.expect(operation, request.timeout ?? defaultTimeoutSeconds);
      return operation;
    },

    async follow(operation, onOutput) {
      const log = createEventLog();
      const report = onOutput ?? ((_: OutputChunk) => undefined);
      if (hasEvents) {
        const end = await followEvents(options, operation, log, report);
        for (const chunk of log.end()) report(chunk);
        if (end === "unsupported") hasEvents = false;
      }
      const limit = (timeouts.get(operation) ?? defaultTimeoutSeconds) * 1000 + graceMilliseconds;
      const view = await pollUntilEnded(options, operation, limit);
      timeouts.delete(operation);
      const { error, exitCode, timedOut, image } = view;
      const stdout = mergeOutput(log.output("stdout"), view.stdout);
      const stderr = mergeOutput(log.output("stderr"), view.stderr);
      return { operation, status: view.ended, error, exitCode, timedOut, stdout, stderr, image };
    },

    async cancel(operation) {
      // Works after an interruption, when the service's own signal is aborted.
      const never = new AbortController().signal;
      try {
        return await withDeadline(clock, cancelMilliseconds, never, (own) =>
          cancel({ ...options, signal: own }, operation),
        );
      } catch {
        // The caller is told that the operation may still run; why is of no use to it.
        return false;
      }
    },
  };

  /** Sent once. */
  async function post(request: InstanceRequest, own: AbortSignal): Promise<Answer> {
    try {
      return await transport.call({
        method: "POST",
        path: "/v1/instances",
        json: request,
        repeatable: false,
        signal: own,
      });
    } catch (error) {
      if (!(error instanceof UnknownOutcomeError)) throw error;
      throw new UnknownOutcomeError(`${error.message}; it is unknown whether the service runs the command`, {
        hint: "bough does not send it again, for it could run twice. Build again: what is finished is cached.",
        cause: error,
      });
    }
  }

  /**
   * An interruption does not break off a request that may start something: its answer is awaited for a few seconds,
   * since only with the operation's id can it be stopped.
   */
  async function answerDespiteInterruption(send: (own: AbortSignal) => Promise<Answer>): Promise<Answer> {
    signal.throwIfAborted();
    const own = new AbortController();
    const interrupt = () => {
      clock.sleep(spawnGraceMilliseconds, own.signal).then(
        () => own.abort(signal.reason),
        () => undefined,
      );
    };
    signal.addEventListener("abort", interrupt, { once: true });
    try {
      return await send(own.signal);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener("abort", interrupt);
      own.abort();
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
  // 409: it has ended already. 404: the service does not know it. 405, 501: this service cannot stop anything.
  const handles = [404, 405, 409, 501];
  const { status } = await transport.call({
    method: "DELETE",
    path: operationPath(operation),
    repeatable: true,
    handles,
    signal,
  });
  if (status === 404 || status === 409) return true;
  if (status === 405 || status === 501)
    return (await lookAtOperation(options, operation)).view.ended !== undefined;
  await pollUntilEnded(options, operation, cancelMilliseconds);
  return true;
}
