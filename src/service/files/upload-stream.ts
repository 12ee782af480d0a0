/** Uploads a stream: its bytes are hashed while they are sent, and never held completely. */
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { minBytes, tooSlow } from "../http/body-stream.ts";
import { childOf, DeadlineError, startIdleTimer } from "../http/deadline.ts";
import { LengthRequiredError } from "../http/errors.ts";
import type { Transport } from "../http/transport.ts";
import { lookUpFile, postFile } from "./file-calls.ts";
import { PieceReader, type Read } from "./piece-reader.ts";
import { createStreamHash, createThreadedStreamHash } from "./stream-hash.ts";
import type { StreamOptions, UploadedFile } from "./upload.ts";

export interface UploadStreamOptions {
  transport: Transport;
  clock: Clock;
  signal: AbortSignal;
}

/** Maximum time in which the service takes no bytes, or prepares its response. */
const serviceIdleMilliseconds = 120_000;
/** Maximum time in which the source has no bytes. */
const sourceIdleMilliseconds = 60_000;

/** The length from which hashing on a second thread saves more time than its start takes. */
const threadedBytes = 128 * 1024 * 1024;

type StreamBody = ReadableStream<Uint8Array> | (() => ReadableStream<Uint8Array>);

/**
 * Errors of `body`, `progress` and `inspect` are passed on unchanged. For a service that requires a length, a body that can be made
 * again is read once more to measure it.
 */
export async function uploadStream(
  options: UploadStreamOptions,
  body: StreamBody,
  stream: StreamOptions = {},
): Promise<UploadedFile> {
  try {
    return await send(options, body, stream);
  } catch (error) {
    if (!(error instanceof LengthRequiredError) || typeof body !== "function") throw error;
    return await send(options, body, { ...stream, contentLength: await lengthOf(body()) });
  }
}

async function lengthOf(body: ReadableStream<Uint8Array>): Promise<number> {
  let bytes = 0;
  for await (const chunk of body) bytes += chunk.byteLength;
  return bytes;
}

async function send(
  { transport, clock, signal }: UploadStreamOptions,
  body: StreamBody,
  { progress, contentLength, inspect }: StreamOptions,
): Promise<UploadedFile> {
  const stop = childOf(signal);
  let pass = startPass(typeof body === "function" ? body() : body);
  let sourceError: { error: unknown } | undefined;

  /** One reading of the body. */
  function startPass(source: ReadableStream<Uint8Array>) {
    const hash = (contentLength ?? 0) >= threadedBytes ? createThreadedStreamHash() : createStreamHash();
    return { hash, reader: new PieceReader(source, clock), size: 0, begun: false, ended: false };
  }

  function endPass({ hash, reader }: typeof pass): void {
    reader.cancel();
    hash.close();
  }

  /** Returns the bytes for an attempt; `undefined` if they were sent and can't be made again. */
  function makeBody() {
    if (pass.begun) {
      // If the body itself has failed, the caller gets its error.
      if (typeof body !== "function" || sourceError !== undefined) return undefined;
      endPass(pass);
      pass = startPass(body());
    }
    return readPieces(pass);
  }

  const failSource = (error: unknown) => {
    sourceError = { error };
    stop.abort(error);
  };
  const timers = startTimers(clock, { failService: (error) => stop.abort(error), failSource });
  const { fromSource } = timers;
  const readPiece = async ({ hash, reader }: typeof pass) => reader.read(await hash.nextBuffer());

  /**
   * Throws if the source sends more or less than it has announced. A service that has received all announced bytes stores them, so
   * the last piece waits until the source has confirmed its end.
   */
  const requireLength = async (announced: number, size: number, done: boolean, next: Promise<Read>) => {
    const more = size === announced && !done ? (await fromSource(next)).piece.byteLength : 0;
    if (size + more > announced || (done && size < announced)) throw otherLength(announced);
  };

  /** Adds a piece to what was read, and inspects the whole before its last piece is sent. */
  const count = async (
    own: typeof pass,
    piece: Uint8Array,
    { done, next }: { done: boolean; next: Promise<Read> },
  ) => {
    if (piece.byteLength > 0) own.hash.update(piece);
    own.size += piece.byteLength;
    if (contentLength !== undefined) await requireLength(contentLength, own.size, done, next);
    if (own.ended || !(contentLength === undefined ? done : own.size === contentLength)) return;
    if (inspect !== undefined) inspect(await own.hash.digest());
    // The service can respond before the generator is resumed.
    own.ended = true;
  };

  // A generator, because Bun keeps a ReadableStream's chunks longer than it needs them. It has finished with a yielded piece when
  // it asks for the next.
  async function* readPieces(own: typeof pass) {
    own.begun = true;
    try {
      let next = readPiece(own);
      for (;;) {
        const { done, piece } = await fromSource(next);
        if (!done) {
          // The next piece is read while this one is sent. Its error is thrown when it is awaited.
          next = readPiece(own);
          next.catch(() => undefined);
        }
        await count(own, piece, { done, next });
        progress?.(own.size);
        if (piece.byteLength > 0) yield piece;
        if (done) break;
      }
    } catch (error) {
      // An earlier attempt's reading was cancelled.
      if (own === pass) sourceError ??= { error };
      throw error;
    }
  }

  try {
    signal.throwIfAborted();
    const stored = await postFile(transport, {
      body: makeBody,
      // If no bytes are announced, fetch does not read the body, and nothing would be inspected.
      ...(contentLength === undefined || contentLength === 0 ? {} : { contentLength }),
      // If everything was sent and has arrived, it need not be fetched and sent again.
      reconcile: async () =>
        pass.ended ? await lookUpFile(transport, await pass.hash.digest(), signal) : undefined,
      // A service may ask for a longer wait than either timer allows.
      onWait: timers.pause,
      signal: stop.signal,
      timeoutMilliseconds: 0,
    });
    const sha256 = await pass.hash.digest();
    if (stored.sha256 !== undefined && stored.sha256 !== sha256) {
      throw new BoughError(
        `the service stored different bytes than were sent: SHA-256 ${stored.sha256} instead of ${sha256}`,
      );
    }
    return { uuid: stored.uuid, sha256, size: pass.size };
  } catch (error) {
    signal.throwIfAborted();
    throw sourceError === undefined ? error : sourceError.error;
  } finally {
    timers.stop();
    stop.abort(new DeadlineError("the upload is over"));
    stop.release();
    endPass(pass);
  }
}

/** Watches both sides of an upload, one at a time: the service takes bytes while the source is not read. */
function startTimers(
  clock: Clock,
  { failService, failSource }: Record<"failService" | "failSource", (error: unknown) => void>,
) {
  const service = startIdleTimer(clock, serviceIdleMilliseconds, () =>
    failService(new DeadlineError(`the service accepted no data for ${serviceIdleMilliseconds / 1000} s`)),
  );
  let fresh = minBytes;
  const source = startIdleTimer(clock, sourceIdleMilliseconds, () =>
    failSource(tooSlow(fresh, sourceIdleMilliseconds)),
  );
  source.pause();
  return {
    async fromSource(reading: Promise<Read>): Promise<Read> {
      service.pause();
      if (fresh < minBytes) source.resume();
      else {
        source.touch();
        fresh = 0;
      }
      const read = await reading;
      fresh += read.piece.byteLength;
      source.pause();
      service.touch();
      return read;
    },
    pause() {
      source.pause();
      service.pause();
    },
    stop() {
      service.stop();
      source.stop();
    },
  };
}

function otherLength(contentLength: number): BoughError {
  return new BoughError(`the source did not send the ${contentLength} bytes that it announced`, {
    hint: "Nothing was stored. Run the build again.",
  });
}
