/** Prepares every call of a client in this process, and translates its errors, as the router does for requests. */
import { BoughError, DiskFullError } from "../../errors.ts";
import { rejectOnAbort } from "../../service/http/deadline.ts";
import { NotFoundError, StatusError } from "../../service/http/errors.ts";
import { cancelOnAbort } from "../../streams.ts";
import type { EngineCore } from "../core.ts";
import { describeFault, findDiskError, freeSpaceHint, isDiskFull, meansUnwritable } from "../faults.ts";
import { RequestError } from "../http/responses.ts";
import type { Layout } from "../layout.ts";
import { UnusableImageError } from "../records/images.ts";

export interface Calls {
  /** Runs a call that changes nothing. Rejects with the signal's reason once that is aborted. */
  read<Result>(work: () => Promise<Result> | Result): Promise<Result>;
  /** Runs a call that may change something, after cleaning up after killed processes. Ends only with the work itself. */
  change<Result>(work: () => Promise<Result> | Result): Promise<Result>;
}

export function createCalls({ state, prepare }: EngineCore, signal: AbortSignal): Calls {
  async function call<Result>(
    work: () => Promise<Result> | Result,
    before: () => Promise<void> | undefined,
  ): Promise<Result> {
    signal.throwIfAborted();
    try {
      // Nothing is read from a layer, or built on one, whose loss can't be recorded.
      state.layerSync.recordFailures();
      await before();
      return await work();
    } catch (error) {
      throw signal.aborted ? signal.reason : toClientError(error, state.layout);
    }
  }
  return {
    read: (work) =>
      rejectOnAbort(
        signal,
        call(work, () => undefined),
      ),
    change: (work) => call(work, prepare),
  };
}

/**
 * Returns a stream that rejects with the signal's reason once that is aborted. The source, which may hold a cache or a process, is then
 * cancelled, even if the signal was aborted before and nothing reads the stream.
 */
export function interruptible(
  stream: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  const reader = stream.getReader();
  const cancellation = cancelOnAbort(reader, signal);
  const end = () => cancellation[Symbol.dispose]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value } = await reader.read().catch((error: unknown) => {
          end();
          throw error;
        });
        signal.throwIfAborted();
        if (value !== undefined) return controller.enqueue(value);
        end();
        controller.close();
      },
      cancel(reason) {
        end();
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}

/** Returns the time of a filter, in milliseconds since 1970. */
export function parseTimeFilter(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}

/** Returns the error as a client of a server would get it, without the words about requests. */
function toClientError(error: unknown, layout: Layout): unknown {
  const fault = findDiskError(error, layout);
  if (error instanceof RequestError) {
    const message = describeFault(fault, layout);
    const isMissing = [404, 410].includes(error.status) || error instanceof UnusableImageError;
    return isMissing ? new NotFoundError(message) : new StatusError(error.status, message, {});
  }
  const message = describeFault(fault, layout);
  if (isDiskFull(fault)) return new DiskFullError(message, { hint: freeSpaceHint });
  // The message about a failing disk already says what to do.
  if (meansUnwritable(fault, layout)) return new StatusError(507, message, {});
  return error instanceof BoughError ? error : new BoughError(message, { cause: error });
}
