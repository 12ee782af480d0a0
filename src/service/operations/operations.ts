/** Starts operations, follows them to their end, and cancels them. */
import type { Clock } from "../../clock.ts";
import type { LearntCapabilities } from "../capabilities.ts";
import type { ServiceNotice } from "../http/attempt.ts";
import { withDeadline } from "../http/deadline.ts";
import { NotFoundError, OverdueError } from "../http/errors.ts";
import { type IdleTimer, startIdleTimer } from "../http/idle-timer.ts";
import type { Transport } from "../http/transport.ts";
import type { ImageService, OperationOutcome, OutputChunk, ServedTime } from "../service.ts";
import type { OperationKind } from "../wire/operation.ts";
import { followEvents } from "./events.ts";
import { graceMilliseconds, withTimeLimit } from "./overdue.ts";
import { type EndedView, lookAtOperation, type PollingOptions, pollUntilEnded } from "./polling.ts";
import { createReceivedEvents, mergeOutput, type ReceivedEvents } from "./received-events.ts";
import { readOperation } from "./record.ts";
import { newRequestId } from "./request-id.ts";
import { spawnInstance } from "./spawn.ts";
import { searchSpawned } from "./spawned.ts";

interface OperationsOptions {
  transport: Transport;
  capabilities: LearntCapabilities;
  clock: Clock;
  signal: AbortSignal;
  onNotice: (notice: ServiceNotice) => void;
  onServed?: (time: ServedTime) => void;
  /** Called at the end of each operation that has made an image. */
  onImage: () => void;
  /** Returns numbers in [0, 1). */
  random: () => number;
  /** Descriptions of what is under way, kept up to date: `operation <id>` for each that is awaited. */
  running: Set<string>;
}

export interface Operations
  extends Pick<ImageService, "newRequestId" | "spawn" | "findSpawned" | "follow" | "hasEnded" | "cancel"> {
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
    startImage?: string,
  ): void;
}

interface ExpectedOperation {
  kind: OperationKind;
  timeoutSeconds: number;
  /** Set for new operations only. */
  startedAt?: number;
  /** The image that a command starts from, and that it returns if it changes nothing. */
  startImage?: string | undefined;
}

const defaultTimeoutSeconds = 600;
const silenceMilliseconds = 60_000;
const cancelMilliseconds = 15_000;

export function createOperations(options: OperationsOptions): Operations {
  const { clock, random, running, capabilities } = options;
  const { newIds } = options.transport;
  const expected = new Map<string, ExpectedOperation>();

  const operations: Operations = {
    expect(operation, kind, timeoutSeconds, isNew, startImage) {
      expected.set(operation, { kind, timeoutSeconds, startImage, ...(isNew && { startedAt: clock.now() }) });
    },

    newRequestId: () => newRequestId(random()),

    async spawn(request, { requestId = operations.newRequestId(), mayRunTwice = false } = {}) {
      const { cancel } = operations;
      const unnamed = "an operation that was being started";
      running.add(unnamed);
      const operation = await spawnInstance({ ...options, cancel }, request, {
        requestId,
        mayRunTwice,
      }).finally(() => running.delete(unnamed));
      running.add(nameOf(operation));
      const timeoutSeconds = request.timeout ?? defaultTimeoutSeconds;
      operations.expect(operation, "instance", timeoutSeconds, true, request.image);
      return operation;
    },

    async findSpawned({ requestId, truncateAt, since }) {
      const search = await searchSpawned(options, { limit: truncateAt + requestId, at: since });
      return search.kind === "found" ? search.operation : undefined;
    },

    async follow(operation, onOutput, listener, timeoutSeconds) {
      if (timeoutSeconds !== undefined && !expected.has(operation))
        operations.expect(operation, "instance", timeoutSeconds, false);
      running.add(nameOf(operation));
      const log = createReceivedEvents(listener);
      const silence = reportSilence(operation);
      const report = (chunk: OutputChunk) => {
        silence.touch();
        onOutput?.(chunk);
      };
      try {
        return await withinTime(operation, async (own) => {
          const readEvents = async () => {
            const end = await followEvents(own, operation, log, report);
            for (const chunk of log.end()) report(chunk);
            // An import without events says nothing about instances.
            const isImport = expected.get(operation)?.kind === "image_import";
            if (!isImport) capabilities.learn("events", end !== "unsupported");
            return end;
          };
          const isRefused = !capabilities.lacks("events") && (await readEvents()) === "unsupported";
          // A service that does not know the operation yet has no events of it, either.
          const onKnown = isRefused ? async () => void (await readEvents()) : undefined;
          const outcome = await outcomeOf(own, operation, log, onKnown);
          return listener?.onRest === undefined ? outcome : passOnRest(outcome, listener.onRest);
        });
      } finally {
        silence.stop();
      }
    },

    hasEnded: async (operation) => (await lookAtOperation(options, operation)).view.ended !== undefined,

    poll: (operation) => withinTime(operation, (own) => outcomeOf(own, operation, createReceivedEvents())),

    async cancel(operation) {
      // Works after an interruption, when the service's own signal is aborted.
      const never = new AbortController().signal;
      try {
        const isEnded = await withDeadline(
          { clock, milliseconds: cancelMilliseconds, parent: never },
          (own) => cancel({ ...options, signal: own }, operation),
        );
        if (isEnded) running.delete(nameOf(operation));
        return isEnded;
      } catch {
        // The caller is told that the operation may still run. The reason would not help it.
        return false;
      }
    },
  };

  /** Reports once a minute that a silent operation is still running. */
  function reportSilence(operation: string): Pick<IdleTimer, "touch" | "stop"> {
    const began = clock.now();
    const onIdle = () => {
      const minutes = Math.round((clock.now() - began) / 60_000);
      options.onNotice({
        level: "info",
        text: `operation ${operation} is still running, after ${minutes} min`,
      });
      timer = startIdleTimer(clock, silenceMilliseconds, onIdle);
    };
    let timer = startIdleTimer(clock, silenceMilliseconds, onIdle);
    return { touch: () => timer.touch(), stop: () => timer.stop() };
  }

  /** Limits the wait by the request's timeout, which is unknown for an operation that another process has started. */
  async function withinTime<T>(operation: string, work: (own: PollingOptions) => Promise<T>): Promise<T> {
    const timeoutSeconds = expected.get(operation)?.timeoutSeconds;
    if (timeoutSeconds === undefined) return await work(options);
    const isQueued = async () => (await lookAtOperation(options, operation)).view.isQueued;
    try {
      return await withTimeLimit(operation, { ...options, timeoutSeconds, isQueued }, (signal) =>
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

  /** Reads the outcome from the record, unless that would only repeat much output. */
  async function outcomeOf(
    own: PollingOptions,
    operation: string,
    log: ReceivedEvents,
    onKnown?: () => Promise<void>,
  ): Promise<OperationOutcome> {
    const { timeoutSeconds = defaultTimeoutSeconds, startedAt, startImage } = expected.get(operation) ?? {};
    const limitMilliseconds = timeoutSeconds * 1000 + graceMilliseconds;
    const created = startedAt === undefined ? undefined : { startedAt, onKnown };
    const view = endedView(log) ?? (await pollUntilEnded(own, operation, limitMilliseconds, created));
    const { ended: status, isQueued: _, unknownStatus: __, served, ...end } = view;
    const kind = expected.get(operation)?.kind ?? "instance";
    if (served !== undefined) options.onServed?.({ operation, kind, ...served });
    if (end.image !== undefined) {
      if (startedAt !== undefined && end.image !== startImage) newIds.add(end.image);
      options.onImage();
    }
    expected.delete(operation);
    running.delete(nameOf(operation));
    // Some services report how the process ended only in the events.
    const exit = readOperation({ state: log.exitState });
    end.exitCode ??= exit.exitCode;
    end.timedOut ||= exit.timedOut;
    const stdout = mergeOutput(log.output("stdout"), view.stdout);
    const stderr = mergeOutput(log.output("stderr"), view.stderr);
    return { ...end, operation, status, stdout, stderr, ...(served && { served }) };
  }

  return operations;
}

/** Output up to this length is always read from the record, which takes precedence. */
const maxRepeatedCharacters = 256 * 1024;

/** Returns the end as the events report it, if they report all of it and the record would repeat much output. */
function endedView(log: ReceivedEvents): EndedView | undefined {
  const characters = log.output("stdout").characters + log.output("stderr").characters;
  const record = characters > maxRepeatedCharacters ? log.record() : undefined;
  const view = record && readOperation(record);
  return view?.ended === undefined ? undefined : { ...view, ended: view.ended };
}

function passOnRest(outcome: OperationOutcome, onRest: (chunk: OutputChunk) => void): OperationOutcome {
  const take = (stream: OutputChunk["stream"]) => {
    const { text, truncated } = outcome[stream];
    if (text !== "") onRest({ stream, text });
    return { text: "", truncated };
  };
  return { ...outcome, stdout: take("stdout"), stderr: take("stderr") };
}

function nameOf(operation: string): string {
  return `operation ${operation}`;
}

async function cancel(options: PollingOptions, operation: string): Promise<boolean> {
  const { transport, signal } = options;
  // 409: it has ended already. 404, 405, 501: there is no such operation, or no call to stop one.
  const handles = [404, 405, 409, 501];
  const { status } = await transport.call({
    method: "DELETE",
    ...transport.operations.addressOf(operation),
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
