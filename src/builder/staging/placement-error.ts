import { BoughError, type BoughErrorOptions } from "../../errors.ts";
import type { Staged } from "./staged.ts";

/** What a COPY, ADD or WORKDIR has staged can't be put in place: the fault is that instruction's, not the RUN's after it. */
export class PlacementError extends BoughError {
  override readonly name = "PlacementError";
  /** The instruction's line; `undefined` where nothing tells which it is. */
  readonly line: number | undefined;

  constructor(message: string, line: number | undefined, options: BoughErrorOptions = {}) {
    super(message, options);
    this.line = line;
  }
}

/** The line that staged what `text`, an error of the service, names: of several paths the longest. */
export function lineNamedIn(text: string, staged: Staged): number | undefined {
  let found = "";
  for (const path of staged.keys()) if (path.length > found.length && names(text, path)) found = path;
  return staged.get(found)?.line;
}

/** True if the path stands in the text, and not as a part of a longer one. */
function names(text: string, path: string): boolean {
  for (let start = text.indexOf(path); start >= 0; start = text.indexOf(path, start + 1)) {
    const [before, after] = [text.charAt(start - 1), text.charAt(start + path.length)];
    if (!/[\w./-]/.test(before) && !/[\w/-]/.test(after)) return true;
  }
  return false;
}
