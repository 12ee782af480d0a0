/** Starts operations, follows them to their end, and cancels them. */
import { withDeadline } from "../http/deadline.ts";
import { isRefusalOfCall, OverdueError } from "../http/errors.ts";
import type { ImageService, OperationOutcome, OutputChunk, ServedTime } from "../service.ts";
import { cancelMilliseconds, type OperationKind, operationName } from "../wire/operation.ts";
import { cancel, watchHold, withTimeLimit } from "./ending.ts";
import { followEvents } from "./events.ts";
import { lookAtOperation, type PollingOptions } from "./polling.ts";
import {
  createOutcomes,
  defaultTimeoutSeconds,
  type ExpectedOperation,
  type OperationRequest,
} from "./read-outcome.ts";
import { createReceivedEvents } from "./received-events.ts";
import { uniqueRequestId } from "./request-id.ts";
import { reportSilence } from "./silence.ts";
import { spawnInstance } from "./spawn.ts";
import { type SearchOptions, searchSpawned } from "./spawned.ts";

interface OperationsOptions extends PollingOptions, SearchOptions {
  onServed: ((time: ServedTime) => void) | undefined;
  /** Called at the end of each operation that has made an image. */
  onImage: () => void;
  /** Returns numbers in [0, 1). */
  random: () => number;
  /** Descriptions of what is under way, kept up to date: `operation <id>` for each that is awaited. */
  running: Set<string>;
}

export interface Operations
  extends Pick<ImageService, "spawn" | "findSpawned" | "follow" | "hasEnded" | "cancel"> {
  /** Waits as `follow` does, but only by polling, for operations without output. */
  poll(operation: string): Promise<OperationOutcome>;
  /**
   * Limits the time that the operation is awaited. `isNew`: the service has just named it, and may know it only after a moment.
   */
  expect(
    operation: string,
    kind: OperationKind,
    timeoutSeconds: number,
    isNew: boolean,
    request?: OperationRequest,
  ): void;
}

export function createOperations(options: OperationsOptions): Operations {
  const { clock, random, running, capabilities } = options;
  const expected = new Map<string, ExpectedOperation>();
  const { outcomeOf } = createOutcomes(options, expected);

  const operations: Operations = {
    expect(operation, kind, timeoutSeconds, isNew, request) {
      expected.set(operation, { kind, timeoutSeconds, ...request, ...(isNew && { startedAt: clock.now() }) });
    },

    async spawn(request, { mayRunTwice = false, ...id } = {}) {
      const { cancel } = operations;
      const unnamed = "an operation that was being started";
      running.add(unnamed);
      const operation = await spawnInstance({ ...options, cancel }, request, {
        requestId: uniqueRequestId(random()),
        ...id,
        mayRunTwice,
      }).finally(() => running.delete(unnamed));
      running.add(operationName(operation));
      const timeoutSeconds = request.timeout ?? defaultTimeoutSeconds;
      const known = { named: [request.image], isKept: !request.disposable };
      operations.expect(operation, "instance", timeoutSeconds, true, known);
      return operation;
    },

    async findSpawned({ requestId, repeats, truncateAt, since }) {
      const sent = { limit: truncateAt + requestId, repeats, at: since };
      const search = await searchSpawned(options, sent).catch((error: unknown) => {
        if (!isRefusalOfCall(error)) throw error;
        capabilities.learn("operationList", false);
        return { kind: "unsupported" as const };
      });
      return search.kind === "found" ? search.operation : undefined;
    },

    async follow(operation, onOutput, listener, timeoutSeconds) {
      if (timeoutSeconds !== undefined && !expected.has(operation))
        operations.expect(operation, "instance", timeoutSeconds, false);
      running.add(operationName(operation));
      const hold = watchHold(clock, listener);
      const log = createReceivedEvents(hold.listener);
      // The timeout of an import includes all that it fetches.
      const isImport = expected.get(operation)?.kind === "image_import";
      const heldUntil = isImport ? neverHeld : hold.heldUntil;
      const silence = reportSilence(options, operation);
      const report = (chunk: OutputChunk) => {
        silence.touch();
        onOutput?.(chunk);
      };
      try {
        return await withinTime(operation, heldUntil, async (own) => {
          const readEvents = async () => {
            const end = await followEvents(own, operation, log, report);
            for (const chunk of log.end()) report(chunk);
            if (end !== "unsupported") learnEvents(true);
            return end;
          };
          // An import without events says nothing about instances.
          const learnEvents = (isServed: boolean) => !isImport && capabilities.learn("events", isServed);
          const isRefused = !capabilities.lacks("events") && (await readEvents()) === "unsupported";
          // A service that does not know the operation, or not yet, has no events of it, either.
          const onKnown = async (isLate: boolean) => {
            if (!isLate || (await readEvents()) === "unsupported") learnEvents(false);
          };
          const outcome = await outcomeOf(own, operation, log, isRefused ? onKnown : undefined);
          return listener?.onRest === undefined ? outcome : passOnRest(outcome, listener.onRest);
        });
      } finally {
        silence.stop();
      }
    },

    hasEnded: async (operation) => (await lookAtOperation(options, operation)).view.ended !== undefined,

    poll: (operation) =>
      withinTime(operation, neverHeld, (own) => outcomeOf(own, operation, createReceivedEvents())),

    async cancel(operation) {
      // Works after an interruption, when the service's own signal is aborted.
      const never = new AbortController().signal;
      try {
        const isEnded = await withDeadline(
          { clock, milliseconds: cancelMilliseconds, parent: never },
          (own) => cancel({ ...options, signal: own }, operation),
        );
        if (isEnded) running.delete(operationName(operation));
        return isEnded;
      } catch {
        // The caller is told that the operation may still run. The reason would not help it.
        return false;
      }
    },
  };

  /** Limits the wait by the request's timeout, which is unknown for an operation that another process has started. */
  async function withinTime<T>(
    operation: string,
    heldUntil: () => number | undefined,
    work: (own: PollingOptions) => Promise<T>,
  ): Promise<T> {
    const timeoutSeconds = expected.get(operation)?.timeoutSeconds;
    if (timeoutSeconds === undefined) return await work(options);
    const isQueued = async () => (await lookAtOperation(options, operation)).view.isQueued;
    try {
      return await withTimeLimit(operation, { ...options, timeoutSeconds, isQueued, heldUntil }, (signal) =>
        work({ ...options, signal }),
      );
    } catch (error) {
      if (!(error instanceof OverdueError)) throw error;
      const isEnded = await operations.cancel(operation);
      const text = `operation ${operation} ${isEnded ? "is cancelled" : "could not be cancelled: it may still run"}`;
      options.onNotice({ level: "warn", text });
      throw error;
    }
  }

  return operations;
}

function passOnRest(outcome: OperationOutcome, onRest: (chunk: OutputChunk) => void): OperationOutcome {
  const take = (stream: OutputChunk["stream"]) => {
    const { text, truncated } = outcome[stream];
    if (text !== "") onRest({ stream, text });
    return { text: "", truncated };
  };
  return { ...outcome, stdout: take("stdout"), stderr: take("stderr") };
}

const neverHeld = () => undefined;
