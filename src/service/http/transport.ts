/** Calls to the service, which are repeated if that is safe. Each failure is a BoughError that says what went wrong. */

import { type Clock, steadyTime } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { createOperationAddresses, type OperationAddresses } from "../operations/operation-address.ts";
import { parseBaseUrl } from "./address.ts";
import { type AttemptParts, attempt, faultOf, type ServiceNotice } from "./attempt.ts";
import { DeadlineError, rejectOnAbort } from "./deadline.ts";
import {
  callName,
  NotFoundError,
  SpentBodyError,
  StatusError,
  UnknownOutcomeError,
  UnreadableResponseError,
} from "./errors.ts";
import { createExchange, type ExchangeOptions, type RequestBody, type RequestParts } from "./exchange.ts";
import type { ServiceResponse } from "./response.ts";
import { type AttemptFailure, decide, isAnswered, isOutcomeUnknown, isOwnResponse } from "./retry.ts";

interface TransportOptions extends ExchangeOptions {
  signal: AbortSignal;
  /** Returns numbers in [0, 1). */
  random: () => number;
  onNotice: (notice: ServiceNotice) => void;
}

export interface ServiceCall extends AttemptParts {
  /** Makes the body for an attempt; `undefined` if it can't be made again. */
  body?: () => RequestBody | undefined;
  /** True if the service may process the call twice without harm. */
  repeatable: boolean;
  /** True if the call starts an operation, so that it is not repeated after a response. */
  isStart?: boolean;
  /** Ids that the call names. While the service does not know a new one, the call is repeated. */
  needs?: () => Iterable<string>;
  /**
   * True if the caller can do without the call, as for all calls that no user has asked for. It resolves with status 0 if the service
   * responds with anything else than what the call requires. Only a service that can't be reached is an error.
   */
  isOptional?: boolean;
  /** Finds, before a repeat, the result of an attempt that may have been processed. */
  reconcile?: () => Promise<ServiceResponse | undefined>;
  /** Called before the wait for another attempt. */
  onWait?: () => void;
  /** Replaces the service's own signal. */
  signal?: AbortSignal;
}

export interface Transport {
  /** Sends the request, repeats it if that is safe, and reads the response. */
  call(call: ServiceCall): Promise<ServiceResponse>;
  /** Makes one attempt and returns the response, whatever its status. The caller reads its body and watches it. */
  open(parts: RequestParts, signal: AbortSignal): Promise<Response>;
  /** Has to be called when bytes of an opened response arrive. */
  recordTraffic(): void;
  /** Returns the call's name for messages: method and address. */
  nameOf(parts: RequestParts): string;
  readonly operations: OperationAddresses;
  readonly newIds: NewIds;
  readonly fields: PlainFields;
  /** True if the service accepts files only as forms. */
  takesForms: boolean;
  /** The time in milliseconds by which the service's clock is ahead of this machine's, by its latest response; 0 if unknown. */
  clockOffset(): number;
}

/** Longer waits are logged as warnings, because people notice them. */
const noticedMilliseconds = 1000;

export function createTransport(options: TransportOptions): Transport {
  const { clock, onNotice } = options;
  const exchange = createExchange(options);
  const operations = createOperationAddresses(parseBaseUrl(options.baseUrl));
  const newIds = createNewIds(clock);
  const hasNew = (ids: Iterable<string>) => [...ids].some(newIds.has);
  let answeredBefore = false;
  /** The `Date` of the latest response, and when it came. Most processes never ask for it. */
  let latest: { date: string; at: number } | undefined;

  /**
   * Waits until a failed call may be repeated. Returns a response if a repeat is not needed, and throws the final error if it is not
   * allowed.
   */
  async function waitAfter(
    failed: FailedCall,
    call: ServiceCall,
    signal: AbortSignal,
  ): Promise<ServiceResponse | undefined> {
    const { failure, error, number, elapsedMilliseconds } = failed;
    const { repeatable, needs, isOptional = false, isStart = false } = call;
    const isTooNew = error instanceof NotFoundError && needs !== undefined && hasNew(needs());
    const attempted = {
      ...{ number, repeatable, answeredBefore, failure, isTooNew },
      ...{ elapsedMilliseconds, isOptional, isStart },
    };
    const decision = decide(attempted, clock.now(), options.random());
    // A signal that is aborted here carries the caller's own deadline for this call.
    if (decision.action === "give up" && isOptional && !signal.aborted && canDoWithout(failure)) {
      onNotice({ level: "debug", text: `${error.message}; going on without it` });
      return { status: 0, headers: new Headers(), body: undefined, refusal: error.message };
    }
    if (decision.action === "give up" || signal.aborted) throw finalError(error, call, failure, number);
    const { milliseconds } = decision;
    onNotice({
      level: milliseconds >= noticedMilliseconds ? "warn" : "debug",
      text: `${error.message}; trying again in ${(milliseconds / 1000).toFixed(1)} s`,
    });
    call.onWait?.();
    try {
      await clock.sleep(milliseconds, signal);
    } catch (reason) {
      // The caller's own deadline ends the wait, but it is not the reason of the failure.
      throw reason instanceof DeadlineError ? finalError(error, call, failure, number) : reason;
    }
    return isOutcomeUnknown(failure) ? await call.reconcile?.() : undefined;
  }

  return {
    operations,
    newIds,
    fields: createPlainFields((text) => onNotice({ level: "debug", text })),
    takesForms: false,
    clockOffset() {
      const offset = latest === undefined ? Number.NaN : Date.parse(latest.date) - latest.at;
      return Number.isNaN(offset) ? 0 : offset;
    },

    async call(call) {
      const signal = call.signal ?? options.signal;
      const standstill = measureStandstill(clock);
      let movedTo: string | undefined;
      const makeBody = () => (call.json === undefined ? call.body?.() : JSON.stringify(call.json));
      let body = makeBody();
      for (let number = 1; ; number++) {
        signal.throwIfAborted();
        const result = await attempt({ exchange, clock, onNotice }, { ...call, movedTo }, body, signal);
        if ("answer" in result) {
          answeredBefore = true;
          const date = result.answer.headers.get("date");
          if (date !== null) latest = { date, at: clock.now() };
          return result.answer;
        }
        const { failure, error } = result;
        movedTo = failure.kind === "moved" ? failure.url : undefined;
        answeredBefore ||= failure.kind === "status" && failure.status < 500;
        const elapsedMilliseconds = standstill(failure, error);
        const answer = await waitAfter({ failure, error, number, elapsedMilliseconds }, call, signal);
        if (answer !== undefined) return answer;
        body = makeBody();
        if (body === undefined && call.body !== undefined)
          throw new SpentBodyError(error.message, failure, { hint: error.hint });
      }
    },

    async open(parts, signal) {
      try {
        const response = await rejectOnAbort(
          signal,
          exchange.send(parts, undefined, signal, { isWatched: true }),
        );
        answeredBefore ||= response.status < 500;
        return response;
      } catch (error) {
        signal.throwIfAborted();
        throw faultOf(exchange, parts, error).error;
      }
    },

    recordTraffic: exchange.recordTraffic,
    nameOf: (parts) => exchange.redact(callName(exchange.nameOf(parts))),
  };
}

interface FailedCall {
  failure: AttemptFailure;
  error: BoughError;
  /** The attempt, counted from 1. */
  number: number;
  elapsedMilliseconds: number;
}

/**
 * Returns a function that returns, after each failure of a call, how long the call has been failing. The time begins anew whenever a
 * service reports progress of its work, so that a call waits for it, however long it takes.
 */
function measureStandstill(clock: Clock): (failure: AttemptFailure, error: BoughError) => number {
  let since = clock.now();
  let progress = "";
  return (failure, { message }) => {
    if (failure.kind === "status" && failure.status === 425 && message !== progress) {
      if (progress !== "") since = clock.now();
      progress = message;
    }
    return clock.now() - since;
  };
}

/** Returns false for a response without an end, which is an attack and must be reported. */
function canDoWithout(failure: AttemptFailure): boolean {
  return isAnswered(failure) && failure.kind !== "excessive";
}

/** Adds the number of attempts, and marks a failure after which the service may have done the work anyway. */
function finalError(
  error: BoughError,
  call: ServiceCall,
  failure: AttemptFailure,
  attempts: number,
): BoughError {
  const message = attempts > 1 ? `${error.message} (tried ${attempts} times)` : error.message;
  const options = { hint: error.hint };
  if (!call.repeatable && isOutcomeUnknown(failure))
    return new UnknownOutcomeError(message, { ...options, isAnswered: isOwnResponse(failure) });
  if (attempts === 1) return error;
  if (error instanceof StatusError) return new StatusError(error.status, message, options);
  if (error instanceof UnreadableResponseError) return new UnreadableResponseError(message, options);
  return error.constructor === BoughError ? new BoughError(message, options) : error;
}

/**
 * Ids of images and files that the service has just made for this client. A service that reads from a replica of its database may
 * know them only after a moment. Ids that a user gave are not included.
 */
interface NewIds {
  add(id: string): void;
  /** True if the service may not know it yet. */
  has(id: string): boolean;
}

const unknownMilliseconds = 5000;

function createNewIds(clock: Pick<Clock, "now" | "steady">): NewIds {
  /** In the order of their times. */
  const madeAt = new Map<string, number>();
  const isNew = (at: number) => steadyTime(clock) - at < unknownMilliseconds;

  return {
    add(id) {
      for (const [old, at] of madeAt) {
        if (isNew(at)) break;
        madeAt.delete(old);
      }
      madeAt.delete(id);
      madeAt.set(id, steadyTime(clock));
    },
    has: (id) => isNew(madeAt.get(id) ?? Number.NEGATIVE_INFINITY),
  };
}

/** Sends requests without their optional fields to a service that rejects unknown fields. */
interface PlainFields {
  /**
   * Sends `json`. A service that is not the public API (`isApi`) gets no `optional` fields. If one rejects them, the request and all
   * later ones to this path are sent without.
   */
  send<T extends object>(
    path: string,
    json: T,
    optional: { names: readonly (keyof T)[]; isApi: () => Promise<boolean> },
    post: (json: T) => Promise<ServiceResponse>,
  ): Promise<ServiceResponse>;
}

function createPlainFields(onPlain: (text: string) => void): PlainFields {
  const plainPaths = new Set<string>();
  return {
    async send(path, json, { names, isApi }, post) {
      const present = names.filter((name) => json[name] !== undefined);
      const plain = { ...json };
      for (const name of present) delete plain[name];
      if (present.length === 0 || plainPaths.has(path) || !(await isApi())) return post(plain);
      try {
        return await post(json);
      } catch (error) {
        if (!(error instanceof StatusError) || ![400, 422].includes(error.status)) throw error;
        const answer = await post(plain).catch((again: unknown) => {
          throw again instanceof StatusError ? error : again;
        });
        plainPaths.add(path);
        onPlain(`${error.message}; sent without ${present.join(", ")}, from now on`);
        return answer;
      }
    },
  };
}
