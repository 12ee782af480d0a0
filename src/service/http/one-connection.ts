/**
 * Detects servers that serve one connection at a time: all other connections wait as long as that one stays open, even while it is
 * idle.
 */
import { type Clock, steadyTime } from "../../clock.ts";

interface ConnectionsOptions {
  clock: Clock;
  /** Sends a request that changes nothing, over an idle connection if there is one, which the server closes after its response. */
  closeIdle: (signal: AbortSignal) => Promise<unknown>;
  onOne: () => void;
}

interface ConnectionWatch {
  /** True if the server serves one connection at a time, so that each has to end with its response. */
  isOne(): boolean;
  /** Runs a request. If it waits although another request got a response, closes the other's connection. */
  watch<Result>(isNew: boolean, signal: AbortSignal, send: () => Promise<Result>): Promise<Result>;
}

/** The time after which a request counts as stalled. Nearly all responses take less. */
const stalledMilliseconds = 15_000;
const closeTimeoutMilliseconds = 5000;
/** The maximum time from the end of a connection to the response on the next one. */
const promptMilliseconds = 3000;
const maxTries = 3;
/** After so many responses on further connections, the server is known to serve several. */
const enoughResponses = 20;

export function createConnectionWatch({ clock, closeIdle, onOne }: ConnectionsOptions): ConnectionWatch {
  let isOne = false;
  let hasResponded = false;
  let waiting = 0;
  /** The number of attempts to close an idle connection. On such a server, the first one helps. */
  let tries = 0;
  let responses = 0;
  let isClosing = false;
  let closedAt: number | undefined;

  /** Returns true if an idle connection was closed. */
  async function tryToClose(): Promise<boolean> {
    tries++;
    isClosing = true;
    const limit = new AbortController();
    clock.sleep(closeTimeoutMilliseconds, limit.signal).then(
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
      const isSecond = isOne || ((waiting > 0 || (hasResponded && isNew)) && responses < enoughResponses);
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
        if (isSecond && !isStalled && !isOne) responses++;
        if (isPrompt && !isOne) {
          isOne = true;
          onOne();
        }
        return result;
      } finally {
        hasResponded = true;
        waiting--;
        over.abort();
      }
    },
  };
}
