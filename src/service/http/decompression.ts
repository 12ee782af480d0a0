import { pipeline, Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";

const chunkSize = 64 * 1024;
const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip({ chunkSize }),
  "x-gzip": () => createGunzip({ chunkSize }),
  deflate: () => createInflate({ chunkSize }),
  br: () => createBrotliDecompress({ chunkSize }),
  zstd: () => createZstdDecompress({ chunkSize }),
};

/**
 * Returns a response that is decompressed as it is read; fetch must not have decompressed it. Bun's own decompression runs ahead
 * of its reader without a limit, so that a few megabytes could fill the memory.
 */
export function decompressed(response: Response): Response {
  const { body, status, statusText } = response;
  const headers = new Headers(response.headers);
  const decoder = decoders[headers.get("content-encoding")?.trim().toLowerCase() ?? ""]?.();
  if (body === null || decoder === undefined) return response;
  headers.delete("content-encoding");
  headers.delete("content-length");
  return new Response(decode(body, decoder), { status, statusText, headers });
}

function decode(body: ReadableStream<Uint8Array>, decoder: Transform): ReadableStream<Uint8Array> {
  let broken: unknown;
  const source = Readable.from(
    chunksOf(body, (error) => (broken = error)),
    { objectMode: false },
  );
  // An error of one stream ends both, and the reader gets it.
  pipeline(source, decoder, () => undefined);
  const parts: AsyncIterator<Uint8Array> = decoder[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await parts.next();
          if (done === true) controller.close();
          else controller.enqueue(new Uint8Array(value));
        } catch {
          throw broken ?? Object.assign(new Error("the body cannot be decompressed"), { code: "ZlibError" });
        }
      },
      cancel() {
        decoder.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

async function* chunksOf(
  body: ReadableStream<Uint8Array>,
  onError: (error: unknown) => void,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } catch (error) {
    onError(error);
    throw error;
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
