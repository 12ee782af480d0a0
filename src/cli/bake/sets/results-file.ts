/** `--results`: writes a line of JSON for each target when it ends. */
import { closeSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { BoughError } from "../../../errors.ts";
import { reasonOf } from "../../../system-error.ts";
import { jsonText } from "../../../terminal/json-text.ts";
import { findPlace, type ResultPlace, unusablePlace } from "../../command-line/result.ts";
import type { BakeInvocation } from "../options/bake-options.ts";

interface ResultsFile extends Disposable {
  /** Writes a line. */
  append(result: Record<string, unknown>): void;
  /** Throws if a line could not be written. */
  requireWritten(): void;
}

/** The file that `--results` names; `stdout` for `-`. */
export type ResultsPlace = ResultPlace | "stdout";

export function readResultsPlace({
  options: { results: given },
  runtime,
}: Pick<BakeInvocation, "options" | "runtime">): ResultsPlace | undefined {
  if (given === undefined) return undefined;
  return given === "-" ? "stdout" : findPlace("--results", given, runtime.workingDirectory);
}

/** Opens the results, and removes what an earlier bake has written. */
export function openResults(place: ResultsPlace, { runtime }: Pick<BakeInvocation, "runtime">): ResultsFile {
  if (place !== "stdout") return openFile(place);
  return {
    append: (result) => runtime.stdout.write(lineOf(result)),
    requireWritten: () => undefined,
    [Symbol.dispose]: () => undefined,
  };
}

/** Opens a file to which each line is appended by one write, so that a killed process leaves only whole lines. */
function openFile(place: ResultPlace): ResultsFile {
  let descriptor: number;
  try {
    descriptor = openSync(place.path, "a", 0o666);
    ftruncateSync(descriptor);
  } catch (error) {
    throw unusablePlace(place, `cannot write a file there: ${reasonOf(error)}`, error);
  }
  let size = 0;
  let problem: unknown;
  return {
    append(result) {
      const bytes = Buffer.from(lineOf(result));
      try {
        for (let written = 0; written < bytes.length; )
          written += writeSync(descriptor, bytes, written, bytes.length - written);
        size += bytes.length;
      } catch (error) {
        problem ??= error;
        // The disk is full: a part of a line would be taken for damage.
        ftruncateSync(descriptor, size);
      }
    },
    requireWritten() {
      if (problem === undefined) return;
      throw new BoughError(`--results ${place.given} lacks targets: ${reasonOf(problem)}`, {
        hint: "The same command writes all lines again; what is built is cached.",
        cause: problem,
      });
    },
    [Symbol.dispose]: () => closeSync(descriptor),
  };
}

function lineOf(result: Record<string, unknown>): string {
  return `${jsonText(result)}\n`;
}
