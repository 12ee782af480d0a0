import { BoughError, type BoughErrorOptions } from "../../errors.ts";
import { truncate, visible } from "../../visible.ts";
import type { DockerfileWarning, LineRange } from "../instruction.ts";
import { maskSecrets } from "../secrets.ts";

/** A problem of a Dockerfile. */
export interface Problem {
  /** Docker's name of the build check, if it has one. */
  rule?: string;
  message: string;
  /** The correct form, as the rest of a sentence that starts with "expected". */
  expected?: string;
  /** The lines of the instruction. */
  range: LineRange;
  /** The place of the problem; the whole instruction if missing. */
  culprit?: Culprit;
  /** The column of the problem, from 1, if it is named behind the line. */
  column?: number;
}

/** A part of one physical line: 1-based line and column, length in UTF-16 units. */
export interface Culprit {
  line: number;
  column: number;
  length: number;
}

/** The maximum number of problems shown: a file that is not a Dockerfile at all has one in each line. */
const maxProblems = 100;

/** Problems and warnings found while a file is read. */
export class Findings {
  readonly problems: Problem[] = [];
  readonly warnings: DockerfileWarning[] = [];

  addProblem(problem: Problem): void {
    if (!this.isFull) this.problems.push(problem);
  }

  addWarning(warning: DockerfileWarning): void {
    if (this.warnings.length < maxProblems) this.warnings.push(warning);
  }

  /** True if reading should stop. */
  get isFull(): boolean {
    return this.problems.length >= maxProblems;
  }
}

/**
 * Thrown for a Dockerfile that does not parse, with all of its problems. The message shows each problem with its file, line,
 * source and a caret under the culprit. A problem that only the build finds is passed alone.
 */
export class DockerfileError extends BoughError {
  override readonly name = "DockerfileError";
  readonly problems: readonly Problem[];
  /** The path of the file in messages. */
  readonly path: string;

  constructor(
    source: { path: string; lines: readonly string[] },
    problems: readonly Problem[],
    { isCutShort, ...options }: BoughErrorOptions & { isCutShort?: boolean } = {},
  ) {
    const rendered = problems.map((problem) => renderProblem(source, problem));
    if (isCutShort === true) rendered.push("... and more: the rest of the file was not read");
    super(rendered.join("\n"), { kind: "usage", ...options });
    this.problems = problems;
    this.path = source.path;
  }
}

/** The number of columns of source that are shown. A longer line is cropped to the part around the culprit. */
const shownWidth = 100;
/** The length up to which a whole line is underlined: a terminal wraps a longer one, and the underline would be below its rest. */
const underlinedWidth = 72;
const cut = "...";
const maxMessageLength = 500;
const shownLines = 10;
/** The number of columns to mask on each side of the part shown, since a secret may extend beyond it. */
const secretWidth = 1000;

/**
 * Renders a problem:
 * ```
 * Dockerfile:3: unknown instruction: RNU (did you mean RUN?)
 *   3 | RNU apt-get update
 *     | ^^^
 *     = expected ...
 * ```
 * Without a culprit, all lines of the instruction are shown, up to ten.
 */
export function renderProblem(source: { path: string; lines: readonly string[] }, problem: Problem): string {
  const { range, culprit, expected } = problem;
  const line = culprit?.line ?? range.start;
  const text = source.lines[line - 1];
  const message = visible(maskSecrets(truncate(problem.message, maxMessageLength)));
  const at = problem.column === undefined ? line : `${line}:${problem.column}`;
  const rendered = [`${visible(source.path)}:${at}: ${message}`];
  const margin = String(Math.max(line, range.start)).length;
  const number = (value: number | string) => `  ${String(value).padStart(margin)}`;
  if (culprit === undefined && range.end > range.start) {
    rendered.push(...wholeRange(source.lines, range));
  } else if (text !== undefined) {
    if (line > range.start) {
      rendered.push(`${number(range.start)} | ${crop(source.lines[range.start - 1] ?? "", 0).text}`);
      if (line > range.start + 1) rendered.push(`${number("")} | ${cut}`);
    }
    const shown = crop(text, culprit === undefined ? 0 : culprit.column - 1);
    rendered.push(`${number(line)} | ${shown.text}`);
    const isMarked = culprit !== undefined || widthOf(shown.text) <= underlinedWidth;
    if (text.trim() !== "" && isMarked)
      rendered.push(`${number("")} | ${underline(text, shown.start, culprit)}`);
  }
  if (expected !== undefined) rendered.push(`${number("")} = expected ${visible(expected)}`);
  return rendered.join("\n");
}

function wholeRange(lines: readonly string[], { start, end }: LineRange): string[] {
  const last = Math.min(end, start + shownLines - 1, lines.length);
  const margin = String(last).length;
  const row = (number: number | string, text: string) => `  ${String(number).padStart(margin)} | ${text}`;
  const rows = lines
    .slice(start - 1, last)
    .map((line, index) => row(start + index, crop(line, 0).text).trimEnd());
  return last < end ? [...rows, row("", cut)] : rows;
}

/** Returns at most `shownWidth` characters of a line, among them the one at `column` (0-based); secrets become stars. */
function crop(line: string, column: number): { text: string; start: number } {
  const start = Math.max(0, Math.min(column - shownWidth / 2, line.length - shownWidth));
  const around = Math.max(0, start - secretWidth);
  const masked = maskSecrets(line.slice(around, start + shownWidth + secretWidth), (length) =>
    "*".repeat(length),
  );
  const inside = masked.slice(start - around, start - around + shownWidth).replaceAll("\t", " ");
  if (line.length <= shownWidth) return { text: visible(inside), start: 0 };
  const tail = start + shownWidth < line.length ? cut : "";
  return { text: `${start > 0 ? cut : ""}${visible(inside)}${tail}`, start };
}

function underline(line: string, start: number, culprit: Culprit | undefined): string {
  const indent = line.length - line.trimStart().length;
  const from = Math.max(start, culprit === undefined ? indent : culprit.column - 1);
  const to = culprit === undefined ? line.trimEnd().length : from + Math.max(1, culprit.length);
  const before = (start > 0 ? cut.length : 0) + widthOf(line.slice(start, from));
  const under = widthOf(line.slice(from, Math.min(to, start + shownWidth)));
  return " ".repeat(before) + "^".repeat(Math.max(1, under));
}

function widthOf(text: string): number {
  return Bun.stringWidth(visible(text.replaceAll("\t", " ")));
}
