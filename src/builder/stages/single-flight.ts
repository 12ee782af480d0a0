/** Performs an action once for all who ask for the same at the same time. */
export type SingleFlight<Result> = (key: string, action: () => Promise<Result>) => Promise<Result>;

export function createSingleFlight<Result>(): SingleFlight<Result> {
  const flights = new Map<string, Promise<Result>>();
  return (key, action) => {
    const begun = flights.get(key);
    if (begun !== undefined) return begun;
    const flight = action().finally(() => flights.delete(key));
    flights.set(key, flight);
    return flight;
  };
}
