/**
 * A server that answers one connection at a time leaves all others waiting as long as that one stays open, which it does while it
 * is idle. Every other server is free to answer several.
 */
import { type Clock, steadyTime } from "../../clock.ts";

interface ConnectionsOptions {
  clock: Clock;
  /** Sends a request that changes nothing, over an idle connection if there is one, which the server closes after its answer. */
  closeIdle: (signal: AbortSignal) => Promise<unknown>;
  onOne: () => void;
}

export interface Connections {
  /** True if the server answers one connection at a time: each has to end with its answer. */
  isOne(): boolean;
  /** Runs a request. If it waits for an answer although another one was answered, closes the other's connection. */
  watch<Result>(isNew: boolean, signal: AbortSignal, send: () => Promise<Result>): Promise<Result>;
}

/** Longer than nearly all answers take. */
const stalledMilliseconds = 15_000;
const closeMilliseconds = 5000;
/** The time between the end of a connection and the answer on the next one. */
const promptMilliseconds = 3000;
const maxTries = 3;
/** After so many answers on further connections the server is known to have several. */
const enoughAnswers = 20;

export function createConnections({ clock, closeIdle, onOne }: ConnectionsOptions): Connections {
  let isOne = false;
  let hasAnswered = false;
  let waiting = 0;
  /** Tries to close idle connections so far, which help on such a server at once. */
  let tries = 0;
  let answers = 0;
  let isClosing = false;
  let closedAt: number | undefined;

  /** Returns true if an idle connection was closed. */
  async function tryToClose(): Promise<boolean> {
    tries++;
    isClosing = true;
    const limit = new AbortController();
    clock.sleep(closeMilliseconds, limit.signal).then(
      () => limit.abort(),
      () => undefined,
    );
    try {
      await closeIdle(limit.signal);
      return true;
    } catch {
      return false;
    } finally {
      limit.abort();
      isClosing = false;
    }
  }

  async function closeWhenStalled(over: AbortSignal, onStalled: () => void): Promise<void> {
    await clock.sleep(isOne ? promptMilliseconds : stalledMilliseconds, over);
    onStalled();
    while (!over.aborted) {
      const mayTry = !isClosing && (isOne || tries < maxTries);
      if (mayTry && (await tryToClose())) closedAt = steadyTime(clock);
      await clock.sleep(promptMilliseconds, over);
    }
  }

  return {
    isOne: () => isOne,
    async watch(isNew, signal, send) {
      const isSecond = isOne || ((waiting > 0 || (hasAnswered && isNew)) && answers < enoughAnswers);
      const over = new AbortController();
      let isStalled = false;
      waiting++;
      if (isSecond)
        void closeWhenStalled(AbortSignal.any([over.signal, signal]), () => {
          isStalled = true;
        }).catch(() => undefined);
      try {
        const result = await send();
        const isPrompt =
          isStalled && closedAt !== undefined && steadyTime(clock) - closedAt < promptMilliseconds;
        if (isSecond && !isStalled && !isOne) answers++;
        if (isPrompt && !isOne) {
          isOne = true;
          onOne();
        }
        return result;
      } finally {
        hasAnswered = true;
        waiting--;
        over.abort();
      }
    },
  };
}
