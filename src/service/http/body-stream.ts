import type { Clock } from "../../clock.ts";
import { DeadlineError } from "./deadline.ts";
import { startIdleTimer } from "./idle-timer.ts";

interface BodyOptions {
  clock: Clock;
  /** Ends the connection. */
  stop: { signal: AbortSignal; abort(reason: unknown): void; release(): void };
  /** What the reader gets instead of what went wrong. */
  explain(error: unknown): unknown;
}

/** Waited for so long, with less than `minBytes` to show for it, the connection counts as dead. */
const silenceMilliseconds = 60_000;
/** A block of an archive: what comes slower never comes to anything. */
export const minBytes = 512;

/** Says in words how slow it is. */
export function tooSlow(bytes: number, milliseconds: number): DeadlineError {
  const seconds = milliseconds / 1000;
  if (bytes === 0) return new DeadlineError(`nothing came for ${seconds} s`);
  return new DeadlineError(`no more than ${bytes} ${bytes === 1 ? "byte" : "bytes"} came in ${seconds} s`);
}

/** An answer's body as it comes, which breaks rather than fall silent for good. */
export function watchedBody(
  body: ReadableStream<Uint8Array> | null,
  { clock, stop, explain }: BodyOptions,
): ReadableStream<Uint8Array> {
  const reader = (body ?? new Blob().stream()).getReader();
  // A handler's body, unlike a socket's, does not end with the request's signal by itself.
  let interrupt: ((reason: unknown) => void) | undefined;
  stop.signal.addEventListener("abort", () => interrupt?.(stop.signal.reason), { once: true });
  // A race against one promise for all of the body would not do: that promise would keep every chunk until the end.
  const read = async () => {
    stop.signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<typeof reader.read>>>();
    interrupt = reject;
    reader.read().then(resolve, reject);
    return promise;
  };
  const end = () => {
    timer.stop();
    stop.release();
    reader.cancel().catch(() => undefined);
  };
  let bytes = minBytes;
  const timer = startIdleTimer(clock, silenceMilliseconds, () =>
    stop.abort(tooSlow(bytes, silenceMilliseconds)),
  );
  timer.pause();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (bytes < minBytes) timer.resume();
      else {
        timer.touch();
        bytes = 0;
      }
      try {
        const { done, value } = await read();
        bytes += value?.byteLength ?? 0;
        if (!done) return controller.enqueue(value);
        controller.close();
        end();
      } catch (error) {
        end();
        controller.error(explain(error));
      } finally {
        interrupt = undefined;
        timer.pause();
      }
    },
    cancel: end,
  });
}
