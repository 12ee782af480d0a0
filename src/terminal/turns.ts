import type { Clock } from "../clock.ts";

/** Defers actions to the next turn of the event loop, after signals that must be handled first. */
interface Turns {
  /** Runs an action now, or in the next turn if the process may have been stopped. Keeps the order. */
  soon(action: () => void): void;
  /** Runs an action in the next turn. */
  next(action: () => void): void;
  /** Runs all deferred actions at once. */
  finish(): void;
}

/** A longer gap between two calls means that the process was stopped, as by SIGSTOP. */
const unseenMilliseconds = 120;

/**
 * A process that continues after a stop runs timers that are due before it handles SIGCONT. A program that draws on a terminal
 * must handle SIGCONT first, since another program has written there. Call `next` ten times a second.
 */
export function createTurns({ now }: Pick<Clock, "now">): Turns {
  const waiting: (() => void)[] = [];
  let seenAt = now();
  const finish = () => {
    for (const action of waiting.splice(0)) action();
  };
  const next = (action: () => void) => {
    seenAt = now();
    if (waiting.push(action) === 1) setImmediate(finish);
  };
  return {
    soon(action) {
      const isLate = now() - seenAt > unseenMilliseconds;
      if (isLate || waiting.length > 0) next(action);
      else action();
    },
    next,
    finish,
  };
}
