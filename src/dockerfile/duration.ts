/** Nanoseconds of each unit of Go's durations. */
const units: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 6e10,
  h: 3.6e12,
};

/** Returns the nanoseconds of a duration in Go's notation, such as `1m30s`; its sign is ignored. */
export function nanosecondsOf(duration: string): number {
  let nanoseconds = 0;
  for (const [, amount = "", unit = ""] of duration.matchAll(/([\d.]+)(ns|us|µs|μs|ms|s|m|h)/g))
    nanoseconds += Number(amount) * (units[unit] ?? 0);
  return nanoseconds;
}
