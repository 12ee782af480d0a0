/** Reads a body of unknown size: counts bytes after decompression, and stops when they exceed the limit. */

/** Bytes of a JSON response: two output streams of the limit that a build asks for, in base64, and room. */
export const maxJsonBytes = 64 * 1024 * 1024;
/** Bytes of a file that is read whole, such as an image's `/etc/passwd`. */
export const maxFileBytes = 4 * 1024 * 1024;
/** Bytes that are kept of an error's body. */
const maxErrorBytes = 64 * 1024;

type Body = ReadableStream<Uint8Array> | null;

/** Returns the whole body; `undefined` if it has more than `maxBytes`. */
export async function readWhole(
  body: Body,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const { bytes, isWhole } = await read(body, maxBytes, signal);
  return isWhole ? bytes : undefined;
}

/** Returns the first `maxErrorBytes` of a body, without waiting for the rest. */
export async function readBeginning(body: Body, signal: AbortSignal): Promise<Uint8Array> {
  const { bytes } = await read(body, maxErrorBytes, signal);
  return bytes.subarray(0, maxErrorBytes);
}

async function read(
  body: Body,
  maxBytes: number,
  signal: AbortSignal,
): Promise<{ bytes: Uint8Array; isWhole: boolean }> {
  if (body === null) return { bytes: new Uint8Array(), isWhole: true };
  const reader = body.getReader();
  // Unlike a socket's body, a handler's body does not end when the request's signal is aborted.
  const cancel = () => void reader.cancel(signal.reason).catch(() => undefined);
  signal.addEventListener("abort", cancel, { once: true });
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      signal.throwIfAborted();
      if (done) return { bytes: join(chunks), isWhole: true };
      chunks.push(value);
      size += value.byteLength;
      if (size > maxBytes) {
        cancel();
        return { bytes: join(chunks), isWhole: false };
      }
    }
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}

/** Most answers come in one piece. */
function join(chunks: readonly Uint8Array[]): Uint8Array {
  const [only, ...others] = chunks;
  return only !== undefined && others.length === 0 ? only : Buffer.concat(chunks);
}
