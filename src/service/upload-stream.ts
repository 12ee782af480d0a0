/** Upload of bytes that are not known beforehand: hashed as they pass, never held. */
import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import { childOf, DeadlineError } from "./abort.ts";
import { postFile } from "./files.ts";
import type { UploadedFile } from "./service.ts";
import type { Transport } from "./transport.ts";

export interface UploadStreamOptions {
  transport: Transport;
  clock: Clock;
  signal: AbortSignal;
}

/** How long the service may take nothing, or think about its answer. Waiting for the source does not count. */
const idleMilliseconds = 120_000;

export async function uploadStream(
  options: UploadStreamOptions,
  body: ReadableStream<Uint8Array>,
  progress?: (bytes: number) => void,
): Promise<UploadedFile> {
  const { transport, clock, signal } = options;
  const hasher = new Bun.CryptoHasher("sha256");
  const reader = body.getReader();
  let size = 0;
  let begun = false;
  let sourceError: { error: unknown } | undefined;
  let waitingForSource = false;
  let lastProgress = clock.now();

  // A generator: Bun keeps a ReadableStream's chunks longer than it needs them.
  async function* passing() {
    begun = true;
    try {
      for (;;) {
        waitingForSource = true;
        const { done, value } = await reader.read();
        waitingForSource = false;
        lastProgress = clock.now();
        if (done) return;
        hasher.update(value);
        size += value.byteLength;
        progress?.(size);
        yield value;
      }
    } catch (error) {
      sourceError = { error };
      throw error;
    }
  }

  const stop = childOf(signal);
  async function watch(): Promise<void> {
    while (!stop.signal.aborted) {
      await clock.sleep(Math.max(1, lastProgress + idleMilliseconds - clock.now()), stop.signal);
      if (waitingForSource) lastProgress = clock.now();
      else if (clock.now() - lastProgress >= idleMilliseconds) {
        stop.abort(
          new BoughError(`POST /v1/files: the service took nothing for ${idleMilliseconds / 1000} s`),
        );
      }
    }
  }
  watch().catch(() => undefined);

  try {
    signal.throwIfAborted();
    const once = () => (begun ? undefined : passing());
    const stored = await postFile(transport, once, { signal: stop.signal, timeoutMilliseconds: 0 });
    const sha256 = hasher.digest("hex");
    if (stored.sha256 !== undefined && stored.sha256 !== sha256) {
      throw new BoughError(
        `the service stored other bytes than were sent: SHA-256 ${stored.sha256} instead of ${sha256}`,
      );
    }
    return { uuid: stored.uuid, sha256, size };
  } catch (error) {
    if (sourceError !== undefined) throw sourceError.error;
    throw error;
  } finally {
    stop.abort(new DeadlineError("the upload is over"));
    stop.release();
    reader.cancel().catch(() => undefined);
  }
}
