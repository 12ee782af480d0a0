import { statSync } from "node:fs";
import { locateBeside } from "../../context/file-system/locate-beside.ts";
import { decodeDockerfile } from "../../dockerfile/text/decode.ts";
import { BoughError, usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { readRegularFile } from "../../open-for-reading.ts";
import { openWithoutLinks } from "../../open-without-links.ts";
import { errorCode, reasonOf } from "../../system-error.ts";
import { formats, reportFormats } from "../command-line/globals.ts";
import { descriptorOf } from "../process/descriptors.ts";
import type { Runtime } from "../process/runtime.ts";

export interface DockerfilePlace {
  /** The path as given, for messages. */
  path: string;
  absolutePath: string;
  /** True if `--dockerfile` names it: it may then be a pipe, such as `/dev/stdin`. A Dockerfile found in the context may not. */
  isNamed: boolean;
  /** The text of a Dockerfile that is not in a file. */
  text?: string;
}

export interface DockerfileText {
  /** The path as given, for messages. */
  path: string;
  absolutePath: string;
  text: string;
}

/** The maximum number of bytes to read. The parser's own limit is far lower. */
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
    const mayBePipe =
      isNamed && (descriptorOf(absolutePath) !== undefined || !statSync(absolutePath).isFile());
    return decodeDockerfile(
      mayBePipe
        ? await inputs.read(absolutePath, { maxBytes: maxDockerfileBytes, signal, mayBeEmpty: true })
        : readFile(absolutePath),
    );
  } catch (error) {
    signal.throwIfAborted();
    throw unreadable(path, error);
  }
}

function readFile(path: string): Buffer {
  const place = locateBeside(path);
  if (place === undefined)
    throw usageError("it is a link out of its directory, which Docker does not follow");
  return readRegularFile(place, maxDockerfileBytes, openWithoutLinks);
}

function unreadable(path: string, error: unknown): BoughError {
  const reason = errorCode(error) === "ENOENT" ? "no such file" : reasonOf(error);
  return new BoughError(`cannot read the Dockerfile ${path}: ${reason}`, {
    kind: "usage",
    hint: [...formats, ...reportFormats].some((format) => format === path)
      ? wording`With ${{ option: "docker" }}, -f is the Dockerfile, as in docker build: write --format ${path}.`
      : wording`Give its path with ${{ option: "dockerfile" }} PATH, or the context directory that contains it.`,
    cause: error,
  });
}
