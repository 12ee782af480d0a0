import type { Transform } from "node:stream";
import { BoughError, messageOf } from "../errors.ts";
import type { Compression } from "./compress.ts";

const chunkSize = 128 * 1024;

/** Detects a compression by the first bytes, whatever the file's name. */
export function detectCompression(beginning: Uint8Array): Compression | "bzip2" | "xz" {
  const starts = (...bytes: number[]) => bytes.every((byte, index) => beginning[index] === byte);
  if (starts(0x1f, 0x8b)) return "gzip";
  if (starts(0x28, 0xb5, 0x2f, 0xfd)) return "zstd";
  if (starts(0x42, 0x5a, 0x68)) return "bzip2";
  return starts(0xfd, 0x37, 0x7a, 0x58, 0x5a) ? "xz" : "none";
}

/** Yields the decompressed content. Rejects if it is damaged or truncated. */
export async function* decompress(
  content: AsyncIterable<Uint8Array>,
  compression: Compression,
  name: string,
): AsyncGenerator<Uint8Array> {
  if (compression === "none") {
    yield* content;
    return;
  }
  // Loaded only for a compressed layer: it would be a good part of a command's start.
  const { Readable } = await import("node:stream");
  const { pipeline } = await import("node:stream/promises");
  const { createGunzip, createZstdDecompress } = await import("node:zlib");
  const stream: Transform =
    compression === "gzip" ? createGunzip({ chunkSize }) : createZstdDecompress({ chunkSize });
  // An error of the source also comes out of the stream.
  let failure: unknown;
  const source = (async function* () {
    try {
      yield* content;
    } catch (error) {
      failure = error;
      throw error;
    }
  })();
  const fed = pipeline(Readable.from(source, { objectMode: false }), stream);
  fed.catch(() => undefined);
  try {
    for await (const chunk of stream) yield chunk as Uint8Array;
    await fed;
  } catch (error) {
    if (failure !== undefined) throw failure;
    throw new BoughError(`${name} is damaged: ${messageOf(error)}`);
  } finally {
    stream.destroy();
  }
}
