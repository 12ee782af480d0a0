import { BoughError } from "../../errors.ts";
import type { Range } from "../../hcl/source.ts";
import { excerptError, lineOfRange } from "./excerpt.ts";

/** A file of a bake, with its name for messages. */
export interface BakeText {
  file: string;
  text: string;
}

/** A place in a file, for messages: `docker-bake.json:12: target.app.args`. */
export interface Place {
  file: string;
  path: readonly string[];
  /** The file's text, to find the line. */
  text?: string;
  /** The place itself, where the file's parser tells it. */
  range?: Range;
}

export function below(place: Place, ...keys: readonly string[]): Place {
  return { ...place, path: [...place.path, ...keys] };
}

export function placeError(place: Place, message: string, hint?: string, cause?: unknown): BoughError {
  const path = place.path.length === 0 ? "" : `${place.path.join(".")}: `;
  if (place.range !== undefined) return excerptError(place.range, `${path}${message}`, hint, cause);
  return new BoughError(`${fileAndLine(place)}: ${path}${message}`, { kind: "usage", hint, cause });
}

/** Returns the file, and the line if it can be told. */
export function fileAndLine({ file, path, text, range }: Place): string {
  if (range !== undefined) return lineOfRange(range);
  const line = text === undefined ? undefined : lineOf(text, path);
  return line === undefined ? file : `${file}:${line}`;
}

/**
 * Finds the line of a key in a JSON or YAML text: each key of the path is looked for behind the one before. The parsers of both
 * report no places. Keys that are written otherwise, as those behind an anchor, are passed over.
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
