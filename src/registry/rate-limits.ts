/** What registries have said about the number of requests that they take: one knowledge for all clients of a process. */
import type { Clock } from "../clock.ts";

/** How a request has ended. `refusedFor`: the registry takes no more for so many milliseconds. `failed`: it has said nothing. */
export type RequestOutcome = "answered" | "failed" | { refusedFor: number };

export interface RateLimits {
  /**
   * Waits until a host takes another request. `counts`: false for one that may wait for others of the same host, as a body that is read
   * from there does. It waits as long as the host has asked for, and takes none of the places.
   */
  enter(host: string, counts: boolean, signal: AbortSignal): Promise<(outcome: RequestOutcome) => void>;
}

/** A longer time is not waited for by anybody: each request learns that it is refused. */
const maxHeldMilliseconds = 300_000;

interface Host {
  /** Milliseconds since the epoch. No request is sent before. */
  until: number;
  /** How many requests may be under way: halved by each refusal, and one more after as many responses as there are. */
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
        while (host.active >= host.limit) await turn(host, signal);
        // Taken while it waits: those behind it would only wait, too.
        host.active += 1;
      }
      const leave = () => {
        if (counts) free(host);
      };
      try {
        await pause(host, clock, signal);
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

async function pause(host: Host, clock: Clock, signal: AbortSignal): Promise<void> {
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

function turn(host: Host, signal: AbortSignal): Promise<void> {
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
