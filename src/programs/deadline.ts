import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";

/** Maximum timeout of a command, in seconds: ten years, which stands for none. */
export const maxTimeout = 10 * 365 * 86_400;

/** Returns a signal that is aborted after some seconds with an error, unless `end` is called first. */
export function startDeadline(
  clock: Clock,
  seconds: number,
  failure: string,
): { signal: AbortSignal; end: () => void } {
  const late = new AbortController();
  const over = new AbortController();
  clock.sleep(seconds * 1000, over.signal).then(
    () => late.abort(new BoughError(`${failure} within ${nameSeconds(seconds)}`)),
    () => undefined,
  );
  return { signal: late.signal, end: () => over.abort() };
}

/** Returns `1 second`, `10 seconds`. */
export function nameSeconds(seconds: number): string {
  return `${seconds} ${seconds === 1 ? "second" : "seconds"}`;
}
