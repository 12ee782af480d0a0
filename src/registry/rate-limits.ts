/** Limits of requests to registries, by their responses. All clients of a process share them. */
import type { Clock } from "../clock.ts";

/** How a request has ended. `refusedFor`: the registry accepts no more for so many milliseconds. `failed`: there was no response. */
export type RequestOutcome = "answered" | "failed" | { refusedFor: number };

export interface RateLimits {
  /**
   * Waits until a host accepts another request. Returns the function to call when the request has ended. `counts`: false for a request
   * whose body is read from the same host: it waits for the time that the host has asked for, but not for other requests.
   */
  enter(host: string, counts: boolean, signal: AbortSignal): Promise<(outcome: RequestOutcome) => void>;
}

/** If a host asks for a longer time, requests are sent, and fail. */
const maxHeldMilliseconds = 300_000;

interface Host {
  /** Milliseconds since the epoch, before which no request is sent. */
  until: number;
  /** The limit of concurrent requests: halved by each refusal, and increased by one after as many responses. */
  limit: number;
  active: number;
  waiting: (() => void)[];
}

/** The clients of one process have one clock. */
const known = new WeakMap<Clock, RateLimits>();

export function rateLimitsOf(clock: Clock): RateLimits {
  const found = known.get(clock) ?? createRateLimits(clock);
  known.set(clock, found);
  return found;
}

export function createRateLimits(clock: Clock): RateLimits {
  const hosts = new Map<string, Host>();
  return {
    async enter(name, counts, signal) {
      const host = hosts.getOrInsertComputed(name, () => ({
        ...{ until: 0, limit: Number.POSITIVE_INFINITY, active: 0 },
        waiting: [],
      }));
      if (counts) {
        while (host.active >= host.limit) await waitForTurn(host, signal);
        // The request counts while it waits, too: those behind it would only wait, as well.
        host.active += 1;
      }
      const leave = () => {
        if (counts) free(host);
      };
      try {
        await waitUntilAllowed(host, clock, signal);
      } catch (error) {
        leave();
        throw error;
      }
      return (outcome) => {
        if (outcome === "answered") host.limit += 1 / host.limit;
        else if (outcome !== "failed") {
          const { refusedFor } = outcome;
          host.limit = Math.max(1, Math.floor(Math.min(host.limit, Math.max(1, host.active)) / 2));
          if (refusedFor <= maxHeldMilliseconds) host.until = Math.max(host.until, clock.now() + refusedFor);
        }
        leave();
      };
    },
  };
}

async function waitUntilAllowed(host: Host, clock: Clock, signal: AbortSignal): Promise<void> {
  for (let seen = 0; host.until > clock.now() && host.until !== seen; ) {
    seen = host.until;
    await clock.sleep(seen - clock.now(), signal);
  }
}

function free(host: Host): void {
  host.active -= 1;
  const room =
    host.limit === Number.POSITIVE_INFINITY ? host.waiting.length : Math.floor(host.limit) - host.active;
  for (const start of host.waiting.splice(0, Math.max(0, room))) start();
}

function waitForTurn(host: Host, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const leave = () => {
      host.waiting.splice(host.waiting.indexOf(start), 1);
      reject(signal.reason);
    };
    const start = () => {
      signal.removeEventListener("abort", leave);
      resolve();
    };
    host.waiting.push(start);
    signal.addEventListener("abort", leave, { once: true });
  });
}
