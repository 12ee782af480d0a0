/** Upload of bytes that are not known beforehand: hashed as they pass, never held. */
import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import { childOf, DeadlineError } from "./abort.ts";
import { findFile, postFile } from "./file-calls.ts";
import { startIdleTimer } from "./idle-timer.ts";
import type { UploadedFile } from "./service.ts";
import type { Transport } from "./transport.ts";

export interface UploadStreamOptions {
  transport: Transport;
  clock: Clock;
  signal: AbortSignal;
}

/** How long the service may take nothing, or think about its answer. */
const serviceIdleMilliseconds = 120_000;
/** How long the source may have nothing to give. */
const sourceIdleMilliseconds = 60_000;

/** What `body` or `progress` fails with is passed on as it is. */
export async function uploadStream(
  options: UploadStreamOptions,
  body: ReadableStream<Uint8Array>,
  progress?: (bytes: number) => void,
): Promise<UploadedFile> {
  const { transport, clock, signal } = options;
  const hasher = new Bun.CryptoHasher("sha256");
  const reader = body.getReader();
  const stop = childOf(signal);
  let size = 0;
  let begun = false;
  let ended = false;
  let sourceError: { error: unknown } | undefined;

  const failSource = (error: unknown) => {
    sourceError = { error };
    stop.abort(error);
  };
  const service = startIdleTimer(clock, serviceIdleMilliseconds, () =>
    stop.abort(new DeadlineError(`the service took nothing for ${serviceIdleMilliseconds / 1000} s`)),
  );
  const source = startIdleTimer(clock, sourceIdleMilliseconds, () =>
    failSource(new DeadlineError(`nothing came for ${sourceIdleMilliseconds / 1000} s`)),
  );
  source.pause();

  // A generator: Bun keeps a ReadableStream's chunks longer than it needs them.
  async function* passing() {
    begun = true;
    try {
      let next = readPiece(reader, clock);
      for (;;) {
        service.pause();
        source.touch();
        const { done, bytes } = await next;
        source.pause();
        service.touch();
        if (!done) {
          // Read while this piece is sent; what goes wrong is told when its turn comes.
          next = readPiece(reader, clock);
          next.catch(() => undefined);
        }
        hasher.update(bytes);
        size += bytes.byteLength;
        progress?.(size);
        if (bytes.byteLength > 0) yield bytes;
        if (done) break;
      }
      ended = true;
    } catch (error) {
      sourceError ??= { error };
      throw error;
    }
  }

  try {
    signal.throwIfAborted();
    const stored = await postFile(transport, {
      body: () => (begun ? undefined : passing()),
      // What was sent to its end need not be fetched and sent anew if it has arrived.
      findOut: async () =>
        ended ? await findFile(transport, hasher.copy().digest("hex"), signal) : undefined,
      signal: stop.signal,
      timeoutMilliseconds: 0,
    });
    const sha256 = hasher.digest("hex");
    if (stored.sha256 !== undefined && stored.sha256 !== sha256) {
      throw new BoughError(
        `the service stored other bytes than were sent: SHA-256 ${stored.sha256} instead of ${sha256}`,
      );
    }
    return { uuid: stored.uuid, sha256, size };
  } catch (error) {
    signal.throwIfAborted();
    throw sourceError === undefined ? error : sourceError.error;
  } finally {
    service.stop();
    source.stop();
    stop.abort(new DeadlineError("the upload is over"));
    stop.release();
    reader.cancel().catch(() => undefined);
  }
}

const pieceBytes = 1024 * 1024;
const pieceMilliseconds = 50;

/**
 * Several of the source's chunks as one, as long as they come fast: passing on costs by the piece, and a network's
 * chunks are small.
 */
async function readPiece(
  reader: { read(): Promise<{ done: boolean; value?: Uint8Array | undefined }> },
  clock: Clock,
): Promise<{ done: boolean; bytes: Uint8Array }> {
  const first = await reader.read();
  if (first.done || first.value === undefined) return { done: true, bytes: new Uint8Array() };
  const until = clock.now() + pieceMilliseconds;
  let bytes = first.value;
  let size = bytes.byteLength;
  while (size < pieceBytes && clock.now() < until) {
    const { done, value } = await reader.read();
    if (done || value === undefined) return { done: true, bytes: bytes.subarray(0, size) };
    if (size + value.byteLength > bytes.byteLength)
      bytes = withRoom(bytes.subarray(0, size), size + value.byteLength);
    bytes.set(value, size);
    size += value.byteLength;
  }
  return { done: false, bytes: bytes.subarray(0, size) };
}

function withRoom(bytes: Uint8Array, size: number): Uint8Array {
  const larger = Buffer.allocUnsafeSlow(Math.max(pieceBytes, size));
  larger.set(bytes);
  return larger;
}
