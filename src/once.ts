/** Returns a function that calls `load` the first time, and returns its result from then on. */
export function once<Result extends object>(load: () => Result): () => Result {
  let loaded: Result | undefined;
  return () => {
    loaded ??= load();
    return loaded;
  };
}

/** Performs an action once for all callers that ask for the same key at the same time. */
export type SingleFlight<Result> = (key: string, action: () => Promise<Result>) => Promise<Result>;

/** `keeps`: later callers get the same result. They retry a failed action, unless `keepsFailure` is true for its error. */
export function createSingleFlight<Result>({
  keeps = false,
  keepsFailure = () => false,
}: {
  keeps?: boolean;
  keepsFailure?: (error: unknown) => boolean;
} = {}): SingleFlight<Result> {
  const flights = new Map<string, Promise<Result>>();
  return (key, action) => {
    const running = flights.get(key);
    if (running !== undefined) return running;
    const forget = () => void flights.delete(key);
    const flight = keeps
      ? action().catch((error: unknown) => {
          if (!keepsFailure(error)) forget();
          throw error;
        })
      : action().finally(forget);
    flights.set(key, flight);
    return flight;
  };
}
