/** Lets a long series of blocking calls yield to timers, sockets and Ctrl-C. */
export interface Pace {
  /** Returns a promise to await if it is time to yield, else `undefined`. The promise rejects with the signal's reason once aborted. */
  step(): Promise<void> | undefined;
}

const sliceMilliseconds = 10;

/** `onPause`: called before each yield. */
export function createPace(signal: AbortSignal | undefined, onPause?: () => void): Pace {
  signal?.throwIfAborted();
  let sliceEnd = performance.now() + sliceMilliseconds;
  return {
    step() {
      if (performance.now() < sliceEnd) return undefined;
      onPause?.();
      return new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
        signal?.throwIfAborted();
        sliceEnd = performance.now() + sliceMilliseconds;
      });
    },
  };
}

/** Takes all steps, at a pace. `onStep` is called with what each yields. */
export async function takeSteps<Step, Result>(
  steps: Generator<Step, Result>,
  pace: Pace,
  onStep?: (step: Step) => void,
): Promise<Result> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    onStep?.(value);
    const pause = pace.step();
    if (pause !== undefined) await pause;
  }
}

/** Takes all steps at once. */
export function takeStepsNow<Result>(steps: Generator<unknown, Result>): Result {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value as Result;
  }
}
