/** Reading a body of unknown size: counted as it is decompressed, and left as soon as it is more than was bargained for. */

/** Bytes of an answer in JSON: two output streams of the limit that a build asks for, in base64, and room. */
export const maxJsonBytes = 64 * 1024 * 1024;
/** Bytes of a file that is read whole, such as an image's `/etc/passwd`. */
export const maxFileBytes = 4 * 1024 * 1024;
/** Bytes that are kept of a body that is only there to say what went wrong. */
const maxErrorBytes = 64 * 1024;

type Body = ReadableStream<Uint8Array> | null;

/** The whole body; `undefined` where it has more than `maxBytes`. */
export async function readWhole(
  body: Body,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const { bytes, isWhole } = await read(body, maxBytes, signal);
  return isWhole ? bytes : undefined;
}

/** The first `maxErrorBytes` of a body. What comes behind them is not waited for. */
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
  // A handler's body, unlike a socket's, does not end with the request's signal by itself.
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
