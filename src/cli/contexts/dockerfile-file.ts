import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from "node:fs";
import { decodeDockerfile } from "../../dockerfile/text/decode.ts";
import { BoughError, usageError } from "../../errors.ts";
import { abandonable } from "../../service/http/deadline.ts";
import { readAtMost } from "../../streams.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import { formats, reportFormats } from "../command-line/globals.ts";

export interface DockerfilePlace {
  /** The path as given, for messages. */
  path: string;
  absolutePath: string;
  /** True if `--dockerfile` names it: it may then be a pipe, such as `/dev/stdin`. A Dockerfile found in the context may not. */
  isNamed: boolean;
  /** The Dockerfile itself, if it is in no file. */
  text?: string;
}

export interface DockerfileText {
  /** The path as given, for messages. */
  path: string;
  absolutePath: string;
  text: string;
}

/** The maximum that is read. The parser's own limit is far lower. */
export const maxDockerfileBytes = 16 * 1024 * 1024;

/** Returns the name of a context's own Dockerfile: as with Docker, `dockerfile` if only that exists. */
export function dockerfileName(isThere: (name: string) => boolean): string {
  return !isThere("Dockerfile") && isThere("dockerfile") ? "dockerfile" : "Dockerfile";
}

/** @throws BoughError of kind `usage` */
export async function readDockerfile(place: DockerfilePlace, signal: AbortSignal): Promise<string> {
  if (place.text !== undefined) return place.text;
  try {
    return readFile(place) ?? (await abandonable(signal, readPipe(place.absolutePath)));
  } catch (error) {
    signal.throwIfAborted();
    throw unreadable(place, error);
  }
}

/** Returns `undefined` for a pipe or a character device, which must be read until it ends. */
function readFile({ absolutePath, isNamed }: DockerfilePlace): string | undefined {
  // Checked before opening it: to open and close a pipe would unblock its writer, and then break the pipe.
  if (isNamed && isStream(statSync(absolutePath))) return undefined;
  // Non-blocking: to open a pipe would hang until a writer opens it.
  const descriptor = openSync(absolutePath, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(descriptor);
    if (stats.isDirectory()) throw usageError("it is a directory");
    if (!stats.isFile()) throw usageError("it is not a regular file");
    const bytes = Buffer.alloc(Math.min(stats.size, maxDockerfileBytes));
    return decodeDockerfile(bytes.subarray(0, readSync(descriptor, bytes)));
  } finally {
    closeSync(descriptor);
  }
}

function isStream(stats: Stats): boolean {
  return stats.isFIFO() || stats.isCharacterDevice();
}

async function readPipe(path: string): Promise<string> {
  try {
    const { bytes } = await readAtMost(maxDockerfileBytes, Bun.file(path).stream());
    return decodeDockerfile(Buffer.from(bytes));
  } catch (error) {
    // Bun can't poll a device, but /dev/null must read as an empty file, as in other programs.
    if (errorCode(error) === "EPERM" && isEmpty(path)) return "";
    throw error;
  }
}

function isEmpty(path: string): boolean {
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    return readSync(descriptor, Buffer.alloc(1)) === 0;
  } finally {
    closeSync(descriptor);
  }
}

function unreadable({ path }: DockerfilePlace, error: unknown): BoughError {
  const reason = errorCode(error) === "ENOENT" ? "there is no such file" : reasonOf(error);
  return new BoughError(`cannot read the Dockerfile ${path}: ${reason}`, {
    kind: "usage",
    hint: [...formats, ...reportFormats].some((format) => format === path)
      ? `With --docker, -f is the Dockerfile, as in docker build: write --format ${path}.`
      : "Give its path with --dockerfile PATH, or the context directory that contains it.",
    cause: error,
  });
}
