/** Uploads a large file whose hash is unknown: the file is read once, and hashed while it is sent. */
import type { Clock } from "../../clock.ts";
import { childOf, DeadlineError, rejectOnAbort } from "../http/deadline.ts";
import type { ServiceResponse } from "../http/response.ts";
import type { Transport } from "../http/transport.ts";
import type { OpenFile, UnhashedFile } from "../wire/file.ts";
import { postFile, storedFileIn } from "./file-calls.ts";
import { createThreadedStreamHash } from "./stream-hash.ts";
import type { SentFile, UnhashedOptions } from "./upload.ts";

interface SendOptions {
  transport: Transport;
  clock: Clock;
  find(sha256: string, signal: AbortSignal): Promise<ServiceResponse | undefined>;
  timeoutMilliseconds: number;
}

/**
 * If the service is slower than this, the rest of the file is hashed before it is sent, which takes a fraction of the upload's time,
 * and the service is asked whether it already has the content.
 */
const minBytesPerSecond = 256 * 1024 * 1024;
const speedCheckIntervalMilliseconds = 500;

/** Rejects if the file can't be sent. It calls `onHash` first, unless the file can't be hashed either. */
export async function sendUnhashed(
  { transport, clock, find, timeoutMilliseconds }: SendOptions,
  { size, open }: UnhashedFile,
  { signal, onBytes, onHash }: UnhashedOptions,
): Promise<SentFile> {
  const file = open();
  const hash = createThreadedStreamHash();
  const stop = childOf(signal);
  const { promise: known, resolve, reject } = Promise.withResolvers<string>();
  known.catch(() => undefined);
  let attempts = 0;
  /** Bytes that were hashed while being sent. */
  let hashed = 0;
  let isAhead = false;
  let isSending = true;
  let found: string | undefined;

  const settle = async (digest: Promise<string>) => {
    try {
      const sha256 = await digest;
      file.requireUnchanged();
      onHash(sha256);
      resolve(sha256);
      if (!isAhead || !isSending) return;
      const answer = await find(sha256, stop.signal);
      found = answer === undefined ? undefined : storedFileIn(answer)?.uuid;
      if (found !== undefined) stop.abort(new DeadlineError("the service has it already"));
    } catch (error) {
      reject(error);
    }
  };
  const hashAhead = () => {
    if (isAhead || hashed === size) return;
    isAhead = true;
    settle(hash.digestRest({ descriptor: file.descriptor, from: hashed, size }));
  };
  const watch = async () => {
    const since = clock.now();
    while (!isAhead && hashed < size) {
      await clock.sleep(speedCheckIntervalMilliseconds, stop.signal);
      if (hashed < ((clock.now() - since) / 1000) * minBytesPerSecond) hashAhead();
    }
  };

  async function* readPieces(attempt: number) {
    try {
      for (let at = 0; at < size; ) {
        const buffer = await hash.nextBuffer();
        // Another attempt has begun.
        if (attempt !== attempts) return;
        const length = file.read(buffer, Math.min(buffer.length, size - at), at);
        if (length === 0) throw file.changed();
        const piece = buffer.subarray(0, length);
        if (!isAhead) {
          hash.update(piece);
          hashed += length;
          if (hashed === size) settle(hash.digest());
        }
        at += length;
        onBytes(at);
        yield piece;
      }
    } catch (error) {
      stop.abort(error);
      throw error;
    }
  }

  try {
    watch().catch(() => undefined);
    const stored = await postFile(transport, {
      body() {
        // A repeat sends from the first byte again, so the rest is hashed from the file.
        if (attempts > 0) hashAhead();
        return readPieces(++attempts);
      },
      contentLength: size,
      reconcile: async () => find(await known, stop.signal),
      signal: stop.signal,
      timeoutMilliseconds,
    });
    const sha256 = await rejectOnAbort(stop.signal, known);
    const actual = stored.sha256 ?? (isAhead ? await hashAgain(file, size) : sha256);
    file.requireUnchanged();
    if (actual !== sha256) throw file.changed();
    return { sha256, uuid: stored.uuid, isReused: false };
  } catch (error) {
    isSending = false;
    signal.throwIfAborted();
    hashAhead();
    const sha256 = await rejectOnAbort(signal, known);
    if (found !== undefined) return { sha256, uuid: found, isReused: true };
    throw error;
  } finally {
    stop.abort(new DeadlineError("the upload is over"));
    stop.release();
    hash.close();
    file.close();
  }
}

/** Hashes the file again if the service does not report the hash of what it stored: that should be the file's current content. */
async function hashAgain({ descriptor }: OpenFile, size: number): Promise<string> {
  const hash = createThreadedStreamHash();
  try {
    return await hash.digestRest({ descriptor, from: 0, size });
  } finally {
    hash.close();
  }
}
