/** Calls of the service, repeated where that is safe; every failure is a BoughError that says what went wrong. */
import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import { abandonable, withDeadline } from "./abort.ts";
import { type Answer, type Result, readAnswer } from "./answer.ts";
import { explainFault } from "./connection.ts";
import { NotFoundError, UnknownOutcomeError } from "./errors.ts";
import { type Body, createExchange, type ExchangeOptions, type RequestParts } from "./exchange.ts";
import { connectionText } from "./failure-text.ts";
import { decide, type Failure, isOutcomeUnknown } from "./retry.ts";

/** Something that a person who waits would like to know; for the log. */
export interface ServiceNotice {
  level: "debug" | "warn";
  text: string;
}

export interface TransportOptions extends ExchangeOptions {
  clock: Clock;
  signal: AbortSignal;
  /** In [0, 1). */
  random: () => number;
  onNotice: (notice: ServiceNotice) => void;
}

export interface Call extends RequestParts {
  /** Sent as JSON. */
  json?: unknown;
  /** Makes the body for an attempt; `undefined` where it cannot be made again. */
  body?: () => Body | undefined;
  /** May the service process it twice without harm? */
  repeatable: boolean;
  /** Error statuses that the caller handles: answered, not thrown. */
  handles?: readonly number[];
  /** Default JSON. */
  expects?: "json" | "bytes";
  /** For an attempt until its answer is there whole. 0: however long it takes, as long as bytes pass. Default 30 s. */
  timeoutMilliseconds?: number;
  /** An attempt that is under way when the signal is aborted is given this long to answer. */
  graceMilliseconds?: number;
  /** Instead of the service's own. */
  signal?: AbortSignal;
}

export interface Transport {
  /** Sends, repeats where that is safe, and reads the answer. */
  call(call: Call): Promise<Answer>;
  /** One attempt; any status, the body still to be read. */
  open(parts: RequestParts, signal: AbortSignal): Promise<Response>;
}

/** Leaves time for a second attempt before the retry policy gives up. */
const callTimeoutMilliseconds = 30_000;
/** A wait that a person notices. */
const noticedMilliseconds = 1000;

export function createTransport(options: TransportOptions): Transport {
  const { clock, onNotice } = options;
  const exchange = createExchange(options);
  const { hasToken, redact } = exchange;
  let answeredBefore = false;

  async function attempt(call: Call, body: Body | undefined, signal: AbortSignal): Promise<Result> {
    const {
      handles = [],
      expects = "json",
      timeoutMilliseconds: milliseconds = callTimeoutMilliseconds,
    } = call;
    const parts =
      call.json === undefined ? call : { ...call, headers: { "content-type": "application/json" } };
    const send = (own: AbortSignal) => exchange.send(parts, body, own, expects === "json" ? "text" : "bytes");
    const limits = { clock, milliseconds, parent: signal, graceMilliseconds: call.graceMilliseconds };
    try {
      const response = await (milliseconds === 0
        ? abandonable(signal, send(signal))
        : withDeadline(limits, send));
      const { status, headers, _data } = response;
      answeredBefore ||= status < 500;
      return readAnswer(
        { call: exchange.nameOf(call), handles, expects, hasToken, redact },
        status,
        headers,
        _data,
      );
    } catch (error) {
      signal.throwIfAborted();
      return faultResult(call, error);
    }
  }

  function faultResult(parts: RequestParts, thrown: unknown) {
    // A refusal of our own (a redirect), not a fault of the connection.
    if (thrown instanceof BoughError) throw thrown;
    const { reason, hint, received, permanent } = explainFault(thrown);
    const text = redact(connectionText(exchange.nameOf(parts), reason));
    const error = new BoughError(text, hint === undefined ? {} : { hint });
    return { failure: { kind: "connection", received, permanent } as const, error };
  }

  return {
    async call(call) {
      const signal = call.signal ?? options.signal;
      const started = clock.now();
      const makeBody = () => (call.json === undefined ? call.body?.() : JSON.stringify(call.json));
      let body = makeBody();
      for (let number = 1; ; number++) {
        signal.throwIfAborted();
        const result = await attempt(call, body, signal);
        if ("answer" in result) return result.answer;
        const { failure, error } = result;
        const elapsedMilliseconds = clock.now() - started;
        const facts = { number, repeatable: call.repeatable, answeredBefore, failure, elapsedMilliseconds };
        const decision = decide(facts, clock.now(), options.random());
        if (decision.action === "give up") throw finalError(error, call, failure, number);
        body = makeBody();
        if (body === undefined && call.body !== undefined) throw finalError(error, call, failure, number);
        const { milliseconds } = decision;
        onNotice({
          level: milliseconds >= noticedMilliseconds ? "warn" : "debug",
          text: `${error.message}; trying again in ${(milliseconds / 1000).toFixed(1)} s`,
        });
        await clock.sleep(milliseconds, signal);
      }
    },

    async open(parts, signal) {
      try {
        const response = await abandonable(signal, exchange.send(parts, undefined, signal, "stream"));
        answeredBefore ||= response.status < 500;
        return response;
      } catch (error) {
        signal.throwIfAborted();
        throw faultResult(parts, error).error;
      }
    },
  };
}

/** Says how often it was tried, and whether the service may have done the work all the same. */
function finalError(error: BoughError, call: Call, failure: Failure, attempts: number): BoughError {
  const message = attempts > 1 ? `${error.message} (tried ${attempts} times)` : error.message;
  const options = error.hint === undefined ? {} : { hint: error.hint };
  if (!call.repeatable && isOutcomeUnknown(failure)) return new UnknownOutcomeError(message, options);
  return error instanceof NotFoundError || attempts === 1 ? error : new BoughError(message, options);
}
