/** What an ended operation's record says about how it has ended, and about its image. Pure. */
import type { OperationOutcome } from "../service.ts";
import type { OperationKind } from "../wire/operation.ts";
import type { ImageCandidates } from "../wire/reader/images.ts";
import type { EndedView } from "./polling.ts";
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
export function endedView(log: ReceivedEvents): EndedView | undefined {
  const characters = log.output("stdout").characters + log.output("stderr").characters;
  const isLong = characters > maxRepeatedCharacters;
  const record = isLong || log.isWhole ? log.record() : undefined;
  const view = record && readOperation(record);
  if (view?.ended === undefined) return undefined;
  const hasSucceeded = view.ended === "SUCCESS" && view.exitCode === 0 && !view.timedOut;
  return isLong || hasSucceeded ? { ...view, ended: view.ended } : undefined;
}
