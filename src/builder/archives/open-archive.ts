import { createReadStream } from "node:fs";
import { readError } from "../../context/file-system/file-error.ts";
import { BoughError } from "../../errors.ts";
import { decompress, detectCompression } from "../../image/compression.ts";
import { blockBytes, isZeroBlock, parseHeader } from "../../image/tar-header.ts";
import { openWithoutLinks } from "../../open-without-links.ts";
import { redactUrl } from "../addresses/source-url.ts";
import type { BuildJob, Decompress } from "../job.ts";
import { fetchContent, watched } from "../remote-files/fetch-url.ts";
import { accessForAdd } from "../remote-files/remote-access.ts";
import type { ArchivePlace } from "../state/staged.ts";

/** Opens the bytes without decompression: those of the file, or of a new download. */
export async function openRaw(place: ArchivePlace, build: BuildJob): Promise<HashedStream> {
  return createHashedStream(await open(place, build));
}

/**
 * Returns the decompressed bytes of a tar archive; `undefined` if the content is not one, whatever its name. The first header decides, as
 * in Docker.
 */
export async function openArchive(
  stream: AsyncIterable<Uint8Array>,
  name: string,
  tools: { decompress: Decompress },
): Promise<AsyncGenerator<Uint8Array> | undefined> {
  return openPeeked(await peekBytes(stream, blockBytes), name, tools);
}

/** Does the same for a stream of which at least the first block has been read. */
export async function openPeeked(
  raw: Peeked,
  name: string,
  tools: { decompress: Decompress },
): Promise<AsyncGenerator<Uint8Array> | undefined> {
  const compression = detectCompression(raw.beginning);
  const bytes =
    compression === "bzip2" || compression === "xz"
      ? tools.decompress(compression, raw.whole(), name)
      : decompress(raw.whole(), compression, name);
  if (compression === "none" && !isHeader(raw.beginning)) {
    await bytes.return(undefined);
    await raw.close();
    return undefined;
  }
  if (compression === "none") return bytes;
  try {
    const plain = await peekBytes(bytes, blockBytes);
    if (isHeader(plain.beginning)) return plain.whole();
    await plain.close();
  } catch (error) {
    // Content that can't be decompressed is copied unchanged.
    if (!(error instanceof BoughError) || error.kind === "interrupted" || error.kind === "usage") throw error;
  }
  await raw.close();
  return undefined;
}

export function archiveName(place: ArchivePlace, buildArgs: ReadonlyMap<string, string>): string {
  return "url" in place ? redactUrl(place.url, buildArgs) : place.absolutePath;
}

/** Returns true if a tar archive can begin with this block. */
export function isHeader(block: Uint8Array): boolean {
  return block.byteLength === blockBytes && !isZeroBlock(block) && parseHeader(block) !== undefined;
}

async function open(place: ArchivePlace, build: BuildJob): Promise<AsyncIterable<Uint8Array>> {
  if ("absolutePath" in place) return openFile(place.absolutePath);
  const access = accessForAdd(build);
  return watched((await fetchContent(place.url, access)).body, access);
}

interface Peeked {
  beginning: Uint8Array;
  whole(): AsyncGenerator<Uint8Array>;
  close(): Promise<void>;
}

/** Reads up to `length` bytes from the beginning; `whole` returns them again. */
export async function peekBytes(stream: AsyncIterable<Uint8Array>, length: number): Promise<Peeked> {
  const chunks = stream[Symbol.asyncIterator]();
  const read: Uint8Array[] = [];
  let bytes = 0;
  while (bytes < length) {
    const { done, value } = await chunks.next();
    if (done === true) break;
    read.push(value);
    bytes += value.byteLength;
  }
  const close = async () => void (await chunks.return?.());
  return {
    beginning: Buffer.concat(read).subarray(0, length),
    close,
    async *whole() {
      try {
        yield* read.splice(0);
        for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
      } finally {
        await close();
      }
    },
  };
}

function openFile(path: string): AsyncIterable<Uint8Array> {
  try {
    return createReadStream(path, { fd: openWithoutLinks(path), highWaterMark: 1024 * 1024 });
  } catch (error) {
    throw readError("read", path, error);
  }
}

/** A stream that hashes all of its bytes, including those that the consumer leaves unread. */
interface HashedStream extends AsyncIterable<Uint8Array>, AsyncDisposable {
  /** Reads the rest; returns the SHA-256 of the whole stream. */
  finish(): Promise<string>;
}

export function createHashedStream(source: AsyncIterable<Uint8Array>): HashedStream {
  const hasher = new Bun.CryptoHasher("sha256");
  const chunks = source[Symbol.asyncIterator]();
  const next = async () => {
    const result = await chunks.next();
    if (result.done !== true) hasher.update(result.value);
    return result;
  };
  return {
    // A consumer that stops early leaves the rest to `finish`.
    [Symbol.asyncIterator]: () => ({ next, return: async () => ({ done: true, value: undefined }) }),
    async finish() {
      for (let result = await next(); result.done !== true; ) result = await next();
      return hasher.digest("hex");
    },
    async [Symbol.asyncDispose]() {
      // An error while stopping in the middle does not matter.
      await chunks.return?.().catch(() => undefined);
    },
  };
}
