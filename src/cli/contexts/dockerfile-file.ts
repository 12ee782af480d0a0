import { decodeDockerfile } from "../../dockerfile/text/decode.ts";
import { BoughError } from "../../errors.ts";
import { readRegularFile } from "../../open-for-reading.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import { formats, reportFormats } from "../command-line/globals.ts";
import type { Runtime } from "../process/runtime.ts";

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
export async function readDockerfile(
  { text, absolutePath, path, isNamed }: DockerfilePlace,
  { inputs, signal }: Pick<Runtime, "inputs" | "signal">,
): Promise<string> {
  if (text !== undefined) return text;
  try {
    return decodeDockerfile(
      isNamed
        ? await inputs.read(absolutePath, { maxBytes: maxDockerfileBytes, signal, mayBeEmpty: true })
        : readRegularFile(absolutePath, maxDockerfileBytes),
    );
  } catch (error) {
    signal.throwIfAborted();
    throw unreadable(path, error);
  }
}

function unreadable(path: string, error: unknown): BoughError {
  const reason = errorCode(error) === "ENOENT" ? "there is no such file" : reasonOf(error);
  return new BoughError(`cannot read the Dockerfile ${path}: ${reason}`, {
    kind: "usage",
    hint: [...formats, ...reportFormats].some((format) => format === path)
      ? `With --docker, -f is the Dockerfile, as in docker build: write --format ${path}.`
      : "Give its path with --dockerfile PATH, or the context directory that contains it.",
    cause: error,
  });
}
