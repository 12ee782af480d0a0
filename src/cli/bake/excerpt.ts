import { renderProblem } from "../../dockerfile/problems/problem.ts";
import { BoughError } from "../../errors.ts";
import { inFile, positionOf, type Range } from "../../hcl/source.ts";

/** Returns a usage error that shows the line of a bake file with the expression underlined. */
export function excerptError(range: Range, message: string, hint?: string, cause?: unknown): BoughError {
  const { source, start, end } = inFile(range);
  const { line, column } = positionOf(source, start);
  const lines = source.text.split(/\r?\n/);
  const rest = (lines[line - 1]?.length ?? 0) - column + 1;
  const length = Math.max(1, Math.min(end - start, rest));
  const shown = renderProblem(
    { path: source.name, lines },
    { message, range: { start: line, end: line }, culprit: { line, column, length }, column },
  );
  return new BoughError(shown, { kind: "usage", hint, cause });
}

/** Returns the file and the line of a range. */
export function lineOfRange(range: Range): string {
  const { source, start } = inFile(range);
  return `${source.name}:${positionOf(source, start).line}`;
}
