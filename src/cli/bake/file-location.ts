import { BoughError } from "../../errors.ts";
import type { Range } from "../../hcl/source.ts";
import { excerptError, lineOfRange } from "./excerpt.ts";

/** The text of a bake file, with the file's name for messages. */
export interface BakeText {
  file: string;
  text: string;
}

/** A location in a bake file, for messages: `docker-bake.json:12: target.app.args`. */
export interface FileLocation {
  file: string;
  path: readonly string[];
  /** The file's text, to find the line. */
  text?: string;
  /** The exact range, if the file's parser reports it. */
  range?: Range;
}

export function below(location: FileLocation, ...keys: readonly string[]): FileLocation {
  return { ...location, path: [...location.path, ...keys] };
}

export function locationError(
  location: FileLocation,
  message: string,
  hint?: string,
  cause?: unknown,
): BoughError {
  const path = location.path.length === 0 ? "" : `${location.path.join(".")}: `;
  if (location.range !== undefined) return excerptError(location.range, `${path}${message}`, hint, cause);
  return new BoughError(`${fileAndLine(location)}: ${path}${message}`, { kind: "usage", hint, cause });
}

/** Returns the file, and the line if it can be told. */
export function fileAndLine({ file, path, text, range }: FileLocation): string {
  if (range !== undefined) return lineOfRange(range);
  const line = text === undefined ? undefined : lineOf(text, path);
  return line === undefined ? file : `${file}:${line}`;
}

/**
 * Finds the line of a key in a JSON or YAML text by searching for each key of the path behind the one before, since the parsers of both
 * report no lines. Keys that are not found, such as those of an anchor, are skipped.
 */
function lineOf(text: string, path: readonly string[]): number | undefined {
  let at = 0;
  let found: number | undefined;
  for (const key of path) {
    const pattern = new RegExp(`(?:^|[\\s{,"'-])${RegExp.escape(key)}["']?\\s*[:=]`, "g");
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match === null) continue;
    at = match.index + match[0].length;
    found = match.index + (/^\s/.test(match[0]) ? 1 : 0);
  }
  return found === undefined ? undefined : text.slice(0, found).split("\n").length;
}
