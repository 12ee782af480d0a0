import type { Clock } from "../clock.ts";
import { DeadlineError } from "./abort.ts";
import { startIdleTimer } from "./idle-timer.ts";

export interface BodyOptions {
  clock: Clock;
  /** Ends the connection. */
  stop: { signal: AbortSignal; abort(reason: unknown): void; release(): void };
  /** What the reader gets instead of what went wrong. */
  explain(error: unknown): unknown;
}

/** Without a byte for so long, while the reader waits for one, the connection counts as dead. */
const silenceMilliseconds = 60_000;

/** An answer's body as it comes, which breaks rather than fall silent for good. */
export function watchedBody(
  body: ReadableStream<Uint8Array> | null,
  { clock, stop, explain }: BodyOptions,
): ReadableStream<Uint8Array> {
  const reader = (body ?? new Blob().stream()).getReader();
  // A handler's body, unlike a socket's, does not end with the request's signal by itself.
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  stop.signal.addEventListener("abort", () => reject(stop.signal.reason), { once: true });
  stopped.catch(() => undefined);
  const end = () => {
    timer.stop();
    stop.release();
    reader.cancel().catch(() => undefined);
  };
  const timer = startIdleTimer(clock, silenceMilliseconds, () =>
    stop.abort(new DeadlineError(`nothing came for ${silenceMilliseconds / 1000} s`)),
  );
  timer.pause();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      timer.touch();
      try {
        const { done, value } = await Promise.race([reader.read(), stopped]);
        if (!done) return controller.enqueue(value);
        controller.close();
        end();
      } catch (error) {
        end();
        controller.error(explain(error));
      } finally {
        timer.pause();
      }
    },
    cancel: end,
  });
}
