/** Calls of the service, repeated if that is safe; every failure is a BoughError that says what went wrong. */

import { type Clock, steadyTime } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { createOperationAddresses, type OperationAddresses } from "../operations/operation-address.ts";
import { parseBaseUrl } from "./address.ts";
import type { Answer } from "./answer.ts";
import { type AttemptParts, attempt, faultOf, type ServiceNotice } from "./attempt.ts";
import { abandonable, DeadlineError } from "./deadline.ts";
import {
  callName,
  NotFoundError,
  SpentBodyError,
  StatusError,
  UnknownOutcomeError,
  UnreadableAnswerError,
} from "./errors.ts";
import { type Body, createExchange, type ExchangeOptions, type RequestParts } from "./exchange.ts";
import { decide, type Failure, isAnswered, isOutcomeUnknown, isOwnAnswer } from "./retry.ts";

interface TransportOptions extends ExchangeOptions {
  signal: AbortSignal;
  /** Returns numbers in [0, 1). */
  random: () => number;
  onNotice: (notice: ServiceNotice) => void;
}

export interface Call extends AttemptParts {
  /** Makes the body for an attempt; `undefined` if it can't be made again. */
  body?: () => Body | undefined;
  /** True if the service may process the call twice without harm. */
  repeatable: boolean;
  /** True if the call starts an operation: it is not repeated once it has been answered. */
  isStart?: boolean;
  /** Ids that the call needs. It is repeated while the service does not know a new one. */
  needs?: () => Iterable<string>;
  /**
   * True if the caller can do without, as with all calls that a build makes on bough's own account: whatever the service answers but
   * what is asked for, the call resolves with status 0. Only a service that can't be reached is an error.
   */
  isOptional?: boolean;
  /** Looks, before a repeat, for the result of an attempt that may have been processed. */
  reconcile?: () => Promise<Answer | undefined>;
  /** Called before the wait for another attempt. */
  onWait?: () => void;
  /** A signal instead of the service's own. */
  signal?: AbortSignal;
}

export interface Transport {
  /** Sends the request, repeats it if that is safe, and reads the response. */
  call(call: Call): Promise<Answer>;
  /** Makes one attempt and returns the response, whatever its status. The caller reads its body and watches it. */
  open(parts: RequestParts, signal: AbortSignal): Promise<Response>;
  /** Has to be called when bytes of an opened response come. */
  noteTraffic(): void;
  /** Returns the call's name for messages: method and address. */
  nameOf(parts: RequestParts): string;
  readonly operations: OperationAddresses;
  readonly newIds: NewIds;
  readonly fields: PlainFields;
  /** True if the service takes files only as forms. */
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
   * Waits until a call that has failed may be sent again. Returns an answer if it need not be, and throws the final error if it must
   * not be.
   */
  async function waitAfter(
    failed: FailedAttempt,
    call: Call,
    signal: AbortSignal,
  ): Promise<Answer | undefined> {
    const { failure, error, number, elapsedMilliseconds } = failed;
    const { repeatable, needs, isOptional = false, isStart = false } = call;
    const isTooNew = error instanceof NotFoundError && needs !== undefined && hasNew(needs());
    const facts = {
      ...{ number, repeatable, answeredBefore, failure, isTooNew },
      ...{ elapsedMilliseconds, isOptional, isStart },
    };
    const decision = decide(facts, clock.now(), options.random());
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
      // The caller's own deadline ends the wait, but it is not why the call has failed.
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
        const response = await abandonable(
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

    noteTraffic: exchange.noteTraffic,
    nameOf: (parts) => exchange.redact(callName(exchange.nameOf(parts))),
  };
}

interface FailedAttempt {
  failure: Failure;
  error: BoughError;
  /** From 1. */
  number: number;
  elapsedMilliseconds: number;
}

/**
 * Returns a function that tells after each failure of a call how long it has been failing. A service that says how far its work has
 * got is waited for, however long that takes.
 */
function measureStandstill(clock: Clock): (failure: Failure, error: BoughError) => number {
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

/** An answer without an end is an attack, which is said. */
function canDoWithout(failure: Failure): boolean {
  return isAnswered(failure) && failure.kind !== "excessive";
}

/** Adds the number of attempts, and marks a failure after which the service may have done the work anyway. */
function finalError(error: BoughError, call: Call, failure: Failure, attempts: number): BoughError {
  const message = attempts > 1 ? `${error.message} (tried ${attempts} times)` : error.message;
  const options = { hint: error.hint };
  if (!call.repeatable && isOutcomeUnknown(failure))
    return new UnknownOutcomeError(message, { ...options, isAnswered: isOwnAnswer(failure) });
  if (attempts === 1) return error;
  if (error instanceof StatusError) return new StatusError(error.status, message, options);
  if (error instanceof UnreadableAnswerError) return new UnreadableAnswerError(message, options);
  return error.constructor === BoughError ? new BoughError(message, options) : error;
}

/**
 * Ids of images and files that the service has just made for this client. A service that reads from a copy of its database may know
 * them only after a moment. Ids that a user gave are not among them.
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

/** Sends requests without their optional fields to a service that refuses fields which it does not know. */
interface PlainFields {
  /**
   * Sends `json`. A service that is known not to be the API (`isApi`) gets no `optional` fields, and neither does one that refuses
   * them: it is sent without, and so are all later requests of this path.
   */
  send<T extends object>(
    path: string,
    json: T,
    optional: { names: readonly (keyof T)[]; isApi: () => Promise<boolean> },
    post: (json: T) => Promise<Answer>,
  ): Promise<Answer>;
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
