/** Lets running builds of a server finish after SIGTERM, for a limited time. */
import type { Clock } from "../../clock.ts";
import type { Log } from "../../terminal/log.ts";
import { formatCount } from "../../terminal/quantity.ts";

/** The work that is in progress. */
interface Work {
  operations: number;
  requests: number;
}

interface Draining {
  /** True once draining has started. */
  readonly isRunning: boolean;
  /** Wraps a handler to record the time of the last request. */
  trackingRequests(handler: (request: Request) => Promise<Response>): (request: Request) => Promise<Response>;
  /** Waits until no build seems to run, for at most `seconds`, or until `signal` is aborted. */
  run(seconds: number, signal: AbortSignal): Promise<void>;
}

/** The time without requests after which no build is assumed to run: a build sends nothing while it hashes files between two steps. */
const quietMilliseconds = 5000;
const pollMilliseconds = 100;

export function createDraining(
  { clock, log }: { clock: Clock; log: Pick<Log, "info" | "warn"> },
  work: () => Work,
): Draining {
  let isRunning = false;
  let requestedAt = Number.NEGATIVE_INFINITY;
  const isBusy = () => {
    const { operations, requests } = work();
    return operations > 0 || requests > 0 || clock.now() - requestedAt < quietMilliseconds;
  };
  return {
    get isRunning() {
      return isRunning;
    },
    trackingRequests: (handler) => async (request) => {
      try {
        return await handler(request);
      } finally {
        requestedAt = clock.now();
      }
    },
    async run(seconds, signal) {
      isRunning = true;
      if (seconds === 0 || !isBusy()) return;
      log.info(
        `SIGTERM: running builds have ${formatCount(seconds, "second")} to end; a second signal ends them`,
      );
      const deadline = clock.now() + seconds * 1000;
      while (isBusy() && !signal.aborted) {
        if (clock.now() >= deadline) {
          const { operations } = work();
          log.warn(
            `ended after ${formatCount(seconds, "second")}, while running: ${formatCount(operations, "operation")}`,
          );
          return;
        }
        await clock.sleep(pollMilliseconds, signal).catch(() => undefined);
      }
    },
  };
}
