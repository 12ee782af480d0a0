/** How operations end: what the record of an ended one says about its status and image, and how one is stopped. */

import { type IdleTimer, startIdleTimer } from "../http/deadline.ts";
import { NotFoundError } from "../http/errors.ts";
import type { OperationOutcome } from "../service.ts";
import type { OperationKind } from "../wire/operation.ts";
import type { ImageCandidates } from "../wire/reader/images.ts";
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
  }: Pick<EndedView, "ended" | "endsUnknown" | "unknownStatus" | "error" | "images">,
  { kind, named, exitCode }: { kind: OperationKind; named: readonly string[]; exitCode: number | undefined },
): Ending {
  const image = imageOf(images, named);
  const isEcho = image !== undefined && images.results.length === 0 && named.includes(image);
  // An import that has an image has succeeded.
  const isUnclear = endsUnknown && exitCode === undefined && (kind === "instance" || image === undefined);
  if (!isUnclear) return { status: ended, error, image, isEcho };
  const word = unknownStatus === "" ? "no status" : `the status ${JSON.stringify(unknownStatus)}`;
  const reason = `it ended with ${word} and no exit code, so it is unknown whether it succeeded`;
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
 * Returns the end as the events report it, if they report all of it: the record would cost a round trip for nothing, or repeat
 * much output. Of a failure, the record may say more.
 */
export function endedView(log: ReceivedEvents, kind: OperationKind): EndedView | undefined {
  const characters = log.output("stdout").characters + log.output("stderr").characters;
  const isLong = characters > maxRepeatedCharacters;
  const record = isLong || log.isWhole ? log.record(kind) : undefined;
  const view = record && readOperation(record);
  if (view?.ended === undefined) return undefined;
  const hasSucceeded =
    view.ended === "SUCCESS" && (kind === "image_import" || view.exitCode === 0) && !view.timedOut;
  return isLong || hasSucceeded ? { ...view, ended: view.ended } : undefined;
}

/** Stops an operation. */

export const cancelMilliseconds = 15_000;

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

const silenceMilliseconds = 60_000;

/** Reports once a minute that a silent operation is still running. */
export function reportSilence(
  { clock, onNotice }: Pick<PollingOptions, "clock" | "onNotice">,
  operation: string,
): Pick<IdleTimer, "touch" | "stop"> {
  const began = clock.now();
  const onIdle = () => {
    const minutes = Math.round((clock.now() - began) / 60_000);
    onNotice({
      level: "info",
      text: `operation ${operation} is still running, after ${minutes} min`,
    });
    timer = startIdleTimer(clock, silenceMilliseconds, onIdle);
  };
  let timer = startIdleTimer(clock, silenceMilliseconds, onIdle);
  return { touch: () => timer.touch(), stop: () => timer.stop() };
}
