import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { nameSeconds } from "./seconds.ts";

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
