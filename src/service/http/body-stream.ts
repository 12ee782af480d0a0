import type { Clock } from "../../clock.ts";
import { cancelOnAbort } from "../../streams.ts";
import { DeadlineError, startIdleTimer } from "./deadline.ts";

interface BodyOptions {
  clock: Clock;
  /** Ends the connection. */
  stop: { signal: AbortSignal; abort(reason: unknown): void; release(): void };
  /** Returns the error that the reader gets in place of the original one. */
  explain(error: unknown): unknown;
}

/** The connection counts as dead if fewer than `minBytes` come in this time. */
const silenceMilliseconds = 60_000;
/** The size of a block of an archive. A slower stream would hardly ever end. */
export const minBytes = 512;

/** Returns the error for a stream that is too slow. */
export function tooSlow(bytes: number, milliseconds: number): DeadlineError {
  const seconds = milliseconds / 1000;
  if (bytes === 0) return new DeadlineError(`no data received for ${seconds} s`);
  return new DeadlineError(`only ${bytes} ${bytes === 1 ? "byte" : "bytes"} received in ${seconds} s`);
}

/** Returns a response's body that fails if it stalls. */
export function watchedBody(
  body: ReadableStream<Uint8Array> | null,
  { clock, stop, explain }: BodyOptions,
): ReadableStream<Uint8Array> {
  const reader = (body ?? new Blob().stream()).getReader();
  const cancellation = cancelOnAbort(reader, stop.signal);
  const end = () => {
    timer.stop();
    cancellation[Symbol.dispose]();
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
        const { done, value } = await reader.read();
        stop.signal.throwIfAborted();
        bytes += value?.byteLength ?? 0;
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
