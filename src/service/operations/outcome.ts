/** Turns an outcome into an error if the command did not run to its end. */
import { BoughError, DiskFullError } from "../../errors.ts";
import { type Message, sentences, wording } from "../../messages/wording.ts";
import { NotFoundError } from "../http/errors.ts";
import { asNumber, asRecord, asText } from "../http/json.ts";
import type { OperationOutcome, OutputChunk } from "../service.ts";
import type { LimitHit } from "../wire/operation.ts";

/** A command that was started has not run to its end. */
export class StoppedCommandError extends BoughError {
  override readonly name = "StoppedCommandError";
  /** What is known of it, such as what it printed until then. */
  readonly outcome: OperationOutcome;

  constructor(message: string, outcome: OperationOutcome, hint?: Message) {
    super(message, { hint });
    this.outcome = outcome;
  }
}

/** Throws a BoughError if the command was stopped by its timeout, cancelled, or never started. */
export function requireEnd(outcome: OperationOutcome, timeoutSeconds: number): void {
  const { operation, status, error, timedOut, isDiskFull } = outcome;
  if (timedOut) {
    const time = `${timeoutSeconds} ${timeoutSeconds === 1 ? "second" : "seconds"}`;
    throw new StoppedCommandError(
      `the command was stopped after ${time} (operation ${operation})`,
      outcome,
      wording`Allow it more time with ${{ option: "timeout", value: "SECONDS" }}.`,
    );
  }
  if (status === "CANCELLED") throw new StoppedCommandError(`operation ${operation} was cancelled`, outcome);
  if (status === "FAILED") {
    const text = failedText(operation, error ?? "the service gives no reason");
    throw isDiskFull === true ? new DiskFullError(text) : new BoughError(text);
  }
}

/** Throws a NotFoundError if the operation failed because the service lacks what its request names. */
export function refuseMissing({ status, error, operation }: OperationOutcome): void {
  if (status !== "FAILED" || error === undefined || !meansMissing(error)) return;
  throw new NotFoundError(failedText(operation, error));
}

function failedText(operation: string, reason: string): string {
  return `the command could not be run: ${reason} (operation ${operation})`;
}

/**
 * True if a service's message says that an image or a file of a request does not exist. Servers respond with 404 or 410. Some use
 * another refusal with such a message, or an operation that could not be run.
 */
export function meansMissing(message: string): boolean {
  return missing.test(message);
}

/** True if a message says that an image does not exist. A missing path `in image x` is something else. */
export function meansMissingImage(message: string): boolean {
  return missingImage.test(message);
}

const missingImage =
  /\b(no|no such|unknown|missing) image\b|\bimage\b[^.]{0,100}\b(not found|not exist|doesn't exist|unknown)\b/i;

const missing =
  /\b(no such|unknown|missing) (image|file)\b|\b(image|file)s?\b[^.]{0,100}\b(not found|not exist|doesn't exist|no longer|deleted|expired)\b/i;

/** strerror(3) of ENOSPC, in glibc and musl. */
const diskFullText = "No space left on device";

/** strerror(3) of ENOEXEC, without its first letter: runtimes of containers write it small. */
const wrongFormatText = "xec format error";

/** Detects in a command's output that a program found no space left, or was for another machine. */
interface OutputWatch {
  see(chunk: OutputChunk): void;
  reportsDiskFull(): boolean;
  reportsWrongFormat(): boolean;
}

export function watchOutput(): OutputWatch {
  const ends = { stdout: "", stderr: "" };
  let [isFull, isWrong] = [false, false];
  return {
    see({ stream, text }) {
      // The text may be split between two chunks.
      const seen = ends[stream] + text;
      isFull ||= seen.includes(diskFullText);
      isWrong ||= seen.includes(wrongFormatText);
      ends[stream] = seen.slice(1 - diskFullText.length);
    },
    reportsDiskFull: () => isFull,
    reportsWrongFormat: () => isWrong,
  };
}

/** Detects the same in the complete output. */
export function reportsDiskFull({ stdout, stderr }: Pick<OperationOutcome, "stdout" | "stderr">): boolean {
  return [stdout, stderr].some(({ text }) => text.includes(diskFullText));
}

const names: readonly LimitHit["limit"][] = ["max_memory_bytes", "max_processes", "max_layer_bytes"];

/** Reads `limits_hit` of an operation's result; `undefined` if it has none. */
export function readLimitHits(value: unknown): LimitHit[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.flatMap((item): LimitHit[] => {
    const record = asRecord(item);
    const limit = names.find((name) => name === asText(record?.limit));
    const bound = asNumber(record?.value);
    return limit === undefined || bound === undefined
      ? []
      : [{ limit, value: bound, killed: record?.killed === true }];
  });
}

/** Describes the limits that a command hit and how to raise them, as a hint. `undefined` if it hit none. */
export function describeLimitHits(hits: readonly LimitHit[]): Message | undefined {
  return sentences(hits.map(describe));
}

function describe({ limit, value, killed }: LimitHit): Message {
  switch (limit) {
    case "max_memory_bytes":
      return wording`Killed: out of memory (limit ${formatBinary(value)})${wording`; raise it with ${{ option: "memory" }}`}.`;
    case "max_processes":
      return killed
        ? wording`Killed: too many processes (limit ${value})${wording`; raise it with ${{ option: "pids" }}`}.`
        : wording`Out of processes (limit ${value})${wording`; raise it with ${{ option: "pids" }}`}.`;
    case "max_layer_bytes":
      return `Killed: the layer grew past its limit (${formatBinary(value)}).`;
  }
}

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Formats bytes in the units that limits are given in: `64 MiB`, `1.5 GiB`. */
function formatBinary(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${Number(value.toFixed(1))} ${units[unit]}`;
}
