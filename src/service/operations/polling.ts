/** Polls an operation until it has ended. */
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { unsupportedStatuses } from "../capabilities.ts";
import type { ServiceNotice } from "../http/attempt.ts";
import { NotFoundError, StatusError, UnreadableResponseError } from "../http/errors.ts";
import { asRecord } from "../http/json.ts";
import type { Requirement, ServiceResponse } from "../http/response.ts";
import { parseRetryAfter, retryAfterIn } from "../http/retry.ts";
import type { ServiceCall, Transport } from "../http/transport.ts";
import { evidenceIn } from "../wire/reader/evidence.ts";
import { isErrorKey } from "../wire/reader/statements.ts";
import { stageOf } from "../wire/reader/status.ts";
import { type KnownOperation, type OperationView, readOperation } from "./record.ts";

export interface PollingOptions {
  transport: Transport;
  clock: Clock;
  signal: AbortSignal;
  onNotice: (notice: ServiceNotice) => void;
}

export type EndedView = OperationView & { ended: NonNullable<OperationView["ended"]> };

interface Look {
  view: OperationView;
  /** The wait that the service asks for, from `Retry-After`. */
  waitMilliseconds: number | undefined;
}

const firstWaitMilliseconds = 50;
const maxWaitMilliseconds = 2000;
const growth = 1.5;
/** Maximum wait, whatever the service asks for. */
export const maxRetryAfterMilliseconds = 60_000;

/** An object, a word for the operation's status, or nothing yet. */
const aRecord: Requirement = {
  what: "a JSON object",
  isMet: (answer) =>
    isNotYet(answer) ||
    asRecord(Array.isArray(answer.body) ? answer.body[0] : answer.body) !== undefined ||
    (typeof answer.body === "string" && stageOf(answer.body) !== undefined),
};

/** Returns true for `Accepted` or `No Content` without a body: the operation is still running. */
function isNotYet({ status, body }: ServiceResponse): boolean {
  return body === undefined && (status === 202 || status === 204);
}

/** Gets an operation's record. Rejects with NotFoundError if the service knows no such operation. */
export async function getRecord(
  transport: Transport,
  operation: string,
  options: Pick<ServiceCall, "handles" | "signal"> = {},
): Promise<ServiceResponse> {
  const { operations } = transport;
  let refusal: { error: unknown } | { answer: ServiceResponse } | undefined;
  /** The response of a guessed address that says nothing about the operation. */
  let other: ServiceResponse | undefined;
  for (const { isGuess, ...address } of operations.candidates(operation)) {
    const call = { method: "GET", ...address, repeatable: true, requires: aRecord, ...options } as const;
    try {
      // A service may respond to an unknown path with anything.
      const answer = await transport.call({ ...call, isOptional: isGuess });
      if (options.handles?.includes(answer.status) === true) refusal ??= { answer };
      else if (answer.status === 0) refusal ??= { error: new NotFoundError(answer.refusal ?? "no answer") };
      else if (isGuess && !isNotYet(answer) && !isAbout(answer.body, operation)) other ??= answer;
      else {
        operations.learn(operation, address);
        return answer;
      }
    } catch (error) {
      if (!isWrongAddress(error)) throw error;
      refusal ??= { error };
    }
  }
  if (other !== undefined) return other;
  if (refusal !== undefined && "answer" in refusal) return refusal.answer;
  throw refusal?.error;
}

/** Returns true if a response describes the state of an operation, or names it. */
function isAbout(body: unknown, operation: string): boolean {
  const { goesOn, end, status, exit } = evidenceIn(body);
  const isSaid = goesOn !== undefined || status !== undefined || exit.code !== undefined || exit.isEmpty;
  const isNamed = JSON.stringify(body)?.includes(operation) === true;
  return isNamed || isSaid || (end !== undefined && !isErrorKey(end.leaf.key));
}

/** True if another address may have the record. */
function isWrongAddress(error: unknown): boolean {
  if (error instanceof StatusError) return [400, 422, ...unsupportedStatuses].includes(error.status);
  return error instanceof NotFoundError || error instanceof UnreadableResponseError;
}

/** Rejects as `getRecord` does. */
export async function lookAtOperation(
  options: PollingOptions,
  operation: string,
  known: KnownOperation = {},
): Promise<Look> {
  const { transport, clock, signal } = options;
  const answer = await getRecord(transport, operation, { signal });
  return {
    view: readOperation(isNotYet(answer) ? { status: "running" } : answer.body, { ...known, id: operation }),
    waitMilliseconds: parseRetryAfter(retryAfterIn(answer.headers), clock.now()),
  };
}

/** A service that reads from a copy of its database may know a new operation only after a moment. */
const unknownNewMilliseconds = 5000;

/** An operation that this client has just started. */
interface NewOperation extends KnownOperation {
  startedAt: number;
  /** Called once when the service knows it. `isLate`: it did not at first, and may have events only now. */
  onKnown?: ((isLate: boolean) => Promise<void>) | undefined;
}

/**
 * Polls immediately, then after 50 ms, growing to 2 s, or when the service asks for it. An unknown status counts as running, for
 * `unknownStatusLimitMilliseconds` at most.
 */
export async function pollUntilEnded(
  options: PollingOptions,
  operation: string,
  unknownStatusLimitMilliseconds: number,
  { startedAt, onKnown, ...known }: NewOperation = { startedAt: Number.NEGATIVE_INFINITY },
): Promise<EndedView> {
  const { clock, signal, onNotice } = options;
  let unknownSince: number | undefined;
  let isKnown = false;
  let wasMissing = false;
  for (const wait of pollIntervals()) {
    const look = await lookAtOperation(options, operation, known).catch((error: unknown) => {
      const isNew = !isKnown && clock.now() - startedAt < unknownNewMilliseconds;
      if (error instanceof NotFoundError && isNew) return undefined;
      throw error;
    });
    if (look === undefined) {
      wasMissing = true;
      await clock.sleep(wait, signal);
      continue;
    }
    if (!isKnown) {
      isKnown = true;
      await onKnown?.(wasMissing);
      if (wasMissing && onKnown !== undefined) continue;
    }
    const { view, waitMilliseconds } = look;
    const { ended } = view;
    if (ended !== undefined) return { ...view, ended };
    if (view.unknownStatus !== undefined) {
      if (unknownSince === undefined) {
        unknownSince = clock.now();
        onNotice({
          level: "warn",
          text: `${unknownStatus(operation, view.unknownStatus)}; waiting for a known one`,
        });
      } else if (clock.now() - unknownSince >= unknownStatusLimitMilliseconds) {
        throw new BoughError(
          `${unknownStatus(operation, view.unknownStatus)}; the service responded with ${view.shown()}`,
          {
            hint: "Is this the address of an image service?",
          },
        );
      }
    } else {
      unknownSince = undefined;
    }
    const requestedWait =
      waitMilliseconds === undefined ? wait : Math.min(waitMilliseconds, maxRetryAfterMilliseconds);
    await clock.sleep(Math.max(requestedWait, firstWaitMilliseconds), signal);
  }
  throw new Error("unreachable: the waits never end");
}

/** Yields 50 ms, growing to 2 s, forever. */
export function* pollIntervals(): Generator<number> {
  for (let wait = firstWaitMilliseconds; ; wait = Math.min(maxWaitMilliseconds, wait * growth)) yield wait;
}

function unknownStatus(operation: string, status: string): string {
  const words =
    status === "" ? "has no status" : `has the status ${JSON.stringify(status)}, which bough does not know`;
  return `operation ${operation} ${words}`;
}
