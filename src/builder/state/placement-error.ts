import { BoughError, type BoughErrorOptions } from "../../errors.ts";
import type { Staged } from "./staged.ts";

/** Thrown if what a COPY, ADD or WORKDIR has staged can't be put in place: the error belongs to that line, not to the RUN. */
export class PlacementError extends BoughError {
  override readonly name = "PlacementError";
  /** The instruction's line; `undefined` if it can't be determined. */
  readonly line: number | undefined;

  constructor(message: string, line: number | undefined, options: BoughErrorOptions = {}) {
    super(message, options);
    this.line = line;
  }
}

/** Returns the line that staged the path named in `text`, an error of the service; the longest path if there are several. */
export function lineNamedIn(text: string, staged: Staged): number | undefined {
  let found = "";
  for (const path of staged.keys()) if (path.length > found.length && names(text, path)) found = path;
  return staged.get(found)?.line;
}

/** Returns true if the text contains the path, and not only as a part of a longer one. */
function names(text: string, path: string): boolean {
  for (let start = text.indexOf(path); start >= 0; start = text.indexOf(path, start + 1)) {
    const [before, after] = [text.charAt(start - 1), text.charAt(start + path.length)];
    if (!/[\w./-]/.test(before) && !/[\w/-]/.test(after)) return true;
  }
  return false;
}
