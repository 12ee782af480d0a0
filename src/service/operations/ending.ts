/** The end of operations: the status and image in the record of an ended one, and how to cancel one. */

import { type Clock, steadyTime } from "../../clock.ts";
import { wording } from "../../messages/wording.ts";
import { childOf } from "../http/deadline.ts";
import { NotFoundError, OverdueError } from "../http/errors.ts";
import type { EventListener, OperationOutcome } from "../service.ts";
import { cancelMilliseconds, type OperationKind } from "../wire/operation.ts";
import type { ImageCandidates } from "../wire/reader/ids.ts";
import { type EndedView, lookAtOperation, type PollingOptions, pollUntilEnded } from "./polling.ts";
import type { ReceivedEvents } from "./received-events.ts";
import { readOperation } from "./record.ts";

interface Ending {
  status: OperationOutcome["status"];
  error: string | undefined;
  image: string | undefined;
  /** True if the image is only what the request named, returned under a name that need not mean a result. */
  isEcho: boolean;
}

/** `named`: images that the request named. `exitCode` may come from events. */
export function endingOf(
  {
    ended,
    endsUnknown,
    unknownStatus,
    error,
    images,
    shown,
  }: Pick<EndedView, "ended" | "endsUnknown" | "unknownStatus" | "error" | "images" | "shown">,
  { kind, named, exitCode }: { kind: OperationKind; named: readonly string[]; exitCode: number | undefined },
): Ending {
  const image = imageOf(images, named);
  const isEcho = image !== undefined && images.results.length === 0 && named.includes(image);
  // An import that has an image has succeeded.
  const isUnclear = endsUnknown && exitCode === undefined && (kind === "instance" || image === undefined);
  if (!isUnclear) return { status: ended, error, image, isEcho };
  const word = unknownStatus === "" ? "no status" : `the status ${JSON.stringify(unknownStatus)}`;
  const reason = `it ended with ${word} and no exit code, so it is unknown whether it succeeded; the service responded with ${shown()}`;
  return { status: "FAILED", error: error ?? reason, image, isEcho };
}

/** A command that changed nothing may return the image that it started from, if nothing else is a result. */
function imageOf({ results, others }: ImageCandidates, named: readonly string[]): string | undefined {
  const isOther = (id: string) => !named.includes(id);
  return results.find(isOther) ?? results[0] ?? others.find(isOther) ?? others[0];
}

/** Output up to this length is read from the record if there may be more than the events have brought. */
const maxRepeatedCharacters = 256 * 1024;

/**
 * Returns the end as the events report it, if they report all of it: reading the record would cost a needless round trip, or repeat much
 * output. For a failure, the record may have more.
 */
export function endedView(log: ReceivedEvents, kind: OperationKind): EndedView | undefined {
  const characters = log.output("stdout").characters + log.output("stderr").characters;
  const isLong = characters > maxRepeatedCharacters;
  const record = isLong || log.isWhole ? log.record(kind) : undefined;
  const view = record && readOperation(record, { kind });
  if (view?.ended === undefined) return undefined;
  const hasSucceeded =
    view.ended === "SUCCESS" && (kind === "image_import" || view.exitCode === 0) && !view.timedOut;
  return isLong || hasSucceeded ? { ...view, ended: view.ended } : undefined;
}

/** Returns true if the operation is, or was, ended. */
export async function cancel(options: PollingOptions, operation: string): Promise<boolean> {
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

interface OverdueOptions extends Omit<PollingOptions, "transport"> {
  /** The request's timeout: the service ends the operation by then. */
  timeoutSeconds: number;
  /** True while the operation is queued, which does not count. */
  isQueued(): Promise<boolean>;
  /** Until when the operation has waited for what its command needs, which does not count either, in the clock's steady time. */
  heldUntil: () => number | undefined;
}

/** The service ends an operation by the request's timeout; this is the time that ending it may take. */
export const graceMilliseconds = 60_000;
/** A busy service may queue operations, but not for this long. */
const maxQueuedMilliseconds = 24 * 60 * 60 * 1000;

/**
 * Runs `work`, which waits for the operation, with a signal. The signal is aborted with an OverdueError at twice the timeout, but
 * not before the timeout and two graces. A warning comes earlier, at the timeout and one grace.
 */
export async function withTimeLimit<T>(
  operation: string,
  options: OverdueOptions,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const child = childOf(options.signal);
  const over = new AbortController();
  watch(operation, options, over.signal).then(child.abort, () => undefined);
  try {
    return await work(child.signal);
  } finally {
    over.abort();
    child.release();
  }
}

/** Notes how long the service fetches layers before it starts a command; `listener` of the events is told as well. */
export function watchHold(
  clock: Clock,
  listener: EventListener | undefined,
): { listener: EventListener; heldUntil: () => number | undefined } {
  let last: number | undefined;
  let isHeld = false;
  let hasStarted = false;
  return {
    listener: {
      ...listener,
      onProgress(message) {
        last = steadyTime(clock);
        isHeld = !hasStarted;
        listener?.onProgress?.(message);
      },
      onStart() {
        if (isHeld) last = steadyTime(clock);
        isHeld = false;
        hasStarted = true;
        listener?.onStart?.();
      },
    },
    heldUntil: () => (isHeld ? steadyTime(clock) : last),
  };
}

/** Resolves with the reason to stop waiting; rejects once `over` is aborted. */
async function watch(operation: string, options: OverdueOptions, over: AbortSignal): Promise<OverdueError> {
  const { clock, onNotice, timeoutSeconds, isQueued, heldUntil } = options;
  const timeout = timeoutSeconds * 1000;
  const warnAfter = timeout + graceMilliseconds;
  const endAfter = Math.max(timeout * 2, warnAfter + graceMilliseconds);
  const began = steadyTime(clock);
  // An operation that is queued for less than this has its whole timeout left until twice the timeout.
  await pass(timeout);
  for (;;) {
    const left = (heldUntil() ?? began) + timeout - steadyTime(clock);
    if (left <= 0 || steadyTime(clock) - began >= maxQueuedMilliseconds) break;
    await pass(left);
  }
  let wasQueued = false;
  while (await isQueued().catch(() => false)) {
    over.throwIfAborted();
    if (steadyTime(clock) - began >= maxQueuedMilliseconds)
      return new OverdueError(`operation ${operation} has been queued for a day`, {});
    wasQueued = true;
    await pass(graceMilliseconds);
  }
  over.throwIfAborted();
  if (wasQueued) await pass(timeout);
  await pass(graceMilliseconds);
  const allowed = `its timeout is ${formatSeconds(timeout)}`;
  onNotice({
    level: "warn",
    text: `operation ${operation} should have ended by now: ${allowed}; waiting for another ${formatSeconds(endAfter - warnAfter)}`,
  });
  await pass(endAfter - warnAfter);
  const message = `operation ${operation} has not ended after ${formatSeconds(endAfter)}, although ${allowed}`;
  return new OverdueError(message, {
    hint: wording`This is an error of the service: it does not report the operation's end.${wording` ${{ command: "show", words: [operation] }} asks it again.`}`,
  });

  /** Sleeps in parts, because a clock sleeps for some weeks at most. */
  async function pass(milliseconds: number): Promise<void> {
    const until = steadyTime(clock) + milliseconds;
    for (let left = milliseconds; left > 0; left = until - steadyTime(clock)) await clock.sleep(left, over);
  }
}

function formatSeconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 1000)} s`;
}
