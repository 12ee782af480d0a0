import type { Clock } from "../clock.ts";

/** Puts off what is done in a turn of the event loop in which something may still have to be told. */
export interface Turns {
  /** Does it now, or, where time has passed unseen, in the next turn: in order. */
  soon(action: () => void): void;
  /** Does it in the next turn. */
  next(action: () => void): void;
  /** Does at once what has been put off. */
  finish(): void;
}

/** A longer gap between two calls means that the process was stopped, as by SIGSTOP. */
const unseenMilliseconds = 120;

/**
 * A process that goes on after a stop does first what was due meanwhile, and only then hears of SIGCONT. Who draws on a terminal
 * has to hear first: somebody else has written there. Call `next` ten times a second.
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
