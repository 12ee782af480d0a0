/** Finds the kind of file that a path names, and reads it on another thread, since a pipe without a writer blocks its reader. */
import { close, constants, fstatSync, open, read, type Stats, stat } from "node:fs";
import { promisify } from "node:util";
import { usageError } from "../../errors.ts";
import { readAtMost } from "../../streams.ts";
import { errorCode } from "../../system-error.ts";
import { descriptorOf } from "./descriptors.ts";

export { rejectOnAbort as whileNotAborted } from "../../service/http/deadline.ts";

/** A file, a pipe or standard input, named by a path. `descriptor`: for the path of a descriptor of this process, its number. */
export type InputSource =
  | { kind: "standard input" }
  /** A pipe. `key` is the same for all of its paths. */
  | { kind: "stream"; key: string; descriptor: number | undefined }
  /** A file or a device. `size`: 0 if it is unknown, as for devices and files in /proc. */
  | { kind: "file"; size: number; descriptor: number | undefined };

const statOf = promisify(stat);

export async function findSource(path: string): Promise<InputSource> {
  const descriptor = descriptorOf(path);
  if (path === "-" || (descriptor === 0 && !statsOf(0).isFile())) return { kind: "standard input" };
  // The path is not opened to find its kind: opening a pipe waits for a writer, and a pipe that has been read has none any more.
  const stats = descriptor === undefined ? await statOf(path) : statsOf(descriptor);
  if (stats.isDirectory()) throw usageError("it is a directory");
  if (stats.isFIFO() || stats.isSocket())
    return { kind: "stream", key: `${stats.dev}:${stats.ino}`, descriptor };
  return { kind: "file", size: stats.isFile() ? stats.size : 0, descriptor };
}

function statsOf(descriptor: number): Stats {
  try {
    return fstatSync(descriptor);
  } catch (error) {
    if (errorCode(error) !== "EBADF") throw error;
    throw usageError("no such descriptor");
  }
}

export async function readFile(
  { size, descriptor }: Extract<InputSource, { kind: "file" }>,
  path: string,
  maxBytes: number,
): Promise<Buffer> {
  if (size > maxBytes) throw usageError(`it is larger than ${maxBytes} bytes`);
  const bytes = await readOpened(descriptor, path, maxBytes);
  if (bytes.byteLength < size) throw usageError("it has become shorter while it was read");
  return bytes;
}

const [openFile, closeFile] = [promisify(open), promisify(close)];

/** Opens a path, and reads to its end, or until it has read more than `maxBytes`. */
export async function readOpened(given: number | undefined, path: string, maxBytes: number): Promise<Buffer> {
  let opened: number | undefined;
  try {
    opened = await openFile(path, constants.O_RDONLY);
  } catch (error) {
    // An inherited descriptor can be read even if it can't be opened again: it is a socket (ENXIO), or another user's, or has no path here.
    if (given === undefined || !["EACCES", "ENXIO", "ENOENT"].includes(errorCode(error) ?? "")) throw error;
  }
  try {
    return await readAll(chunksOf(opened ?? given ?? -1), maxBytes);
  } finally {
    if (opened !== undefined) await closeFile(opened);
  }
}

export async function readAll(chunks: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  return (await readAtMost(maxBytes, chunks)).bytes;
}

const chunkBytes = 64 * 1024;
/** The interval between reads of a descriptor that does not block. */
const pollMilliseconds = 10;

/** Yields the chunks of a descriptor. Unlike Bun's own streams, it can read a device. */
async function* chunksOf(descriptor: number): AsyncGenerator<Uint8Array> {
  const chunk = Buffer.alloc(chunkBytes);
  for (;;) {
    const bytes = await readChunk(descriptor, chunk);
    if (bytes === undefined) await Bun.sleep(pollMilliseconds);
    else if (bytes === 0) return;
    else yield chunk.subarray(0, bytes);
  }
}

/** Returns the number of bytes that were read; `undefined` if none are available yet. */
function readChunk(descriptor: number, chunk: Buffer): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  read(descriptor, chunk, 0, chunk.byteLength, null, (error, bytes) => {
    if (error === null) resolve(bytes);
    else if (errorCode(error) === "EAGAIN") resolve(undefined);
    else reject(error);
  });
  return promise;
}
