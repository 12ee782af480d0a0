import { existsSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { BuildResult } from "../build/result.ts";
import { BoughError } from "../errors.ts";
import { reasonOf } from "../system-error.ts";
import type { Values } from "./arguments.ts";

/** Files that a successful build leaves for other programs: `--metadata-file` and `--iidfile`. */
export interface ResultFiles {
  write(result: BuildResult): void;
}

/**
 * Takes away what an earlier build has left there: after a failure there is no such file (as with docker build).
 *
 * @throws BoughError of kind `usage` where a path is no place for a file
 */
export function prepareResultFiles(values: Values, workingDirectory: string): ResultFiles {
  const metadata = prepare("--metadata-file", values.text("metadata-file"), workingDirectory);
  const imageId = prepare("--iidfile", values.text("iidfile"), workingDirectory);
  return {
    write(result) {
      if (metadata !== undefined) writeWhole(metadata, `${JSON.stringify(metadataOf(result), null, 2)}\n`);
      // As docker build writes it: without a line end.
      if (imageId !== undefined) writeWhole(imageId, result.image);
    },
  };
}

function metadataOf({ image, tag, session, steps, uploaded, seconds }: BuildResult) {
  return { image, tag: tag ?? null, session, seconds, uploaded, steps };
}

function prepare(option: string, given: string | undefined, workingDirectory: string): string | undefined {
  if (given === undefined) return undefined;
  const path = resolve(workingDirectory, given);
  const problem = (text: string) => new BoughError(`${option} ${given}: ${text}`, { kind: "usage" });
  if (!existsSync(dirname(path))) throw problem(`there is no directory ${dirname(given)}`);
  if (existsSync(path) && !statSync(path).isFile()) throw problem("this is no file");
  try {
    rmSync(path, { force: true });
  } catch (error) {
    throw problem(reasonOf(error));
  }
  return path;
}

/** Whoever sees the file sees all of it. */
function writeWhole(path: string, text: string): void {
  const unfinished = `${path}.${process.pid}.tmp`;
  try {
    writeFileSync(unfinished, text);
    renameSync(unfinished, path);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw new BoughError(`cannot write ${path}: ${reasonOf(error)}`, { cause: error });
  }
}
