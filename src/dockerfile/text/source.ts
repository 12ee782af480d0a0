import { truncate, visible } from "../../visible.ts";
import type { HereDocument, LineRange } from "../instruction.ts";
import type { Culprit, Findings, Problem } from "../problems/problem.ts";
import { DirectiveReader, type EscapeCharacter } from "./directives.ts";
import { heredocMarkers, stripTabs } from "./heredoc.ts";
import { trimStart } from "./space.ts";

/** One instruction's text: physical lines joined at their continuation characters, without comments and blank lines. */
export interface LogicalLine {
  text: string;
  /** `text` without white space around it. */
  original: string;
  /** `text` with one blank for all white space where lines are joined. */
  title: string;
  /** Maps places in `text` to places in the file. */
  map: LineMap;
  range: LineRange;
  heredocs: readonly HereDocument[];
  /** The bodies as written, each with its last line, for a shell that reads here-documents itself. */
  heredocText: string;
}

/** The maximum length of an instruction's text in a warning. */
const maxQuotationLength = 200;

/** Splits text into logical lines (Dockerfile reference, "Format"). Never throws: problems go to the findings. */
export class SourceReader {
  /** Physical lines without their ends. */
  readonly lines: readonly string[];
  private readonly physicalLines: PhysicalLines;
  private readonly directiveReader = new DirectiveReader();
  private readonly findings: Findings;
  /** Index of the next physical line. */
  private next = 0;

  constructor(text: string, findings: Findings) {
    const excess = findExcess(text);
    this.physicalLines = new PhysicalLines(excess === undefined ? text : "");
    this.lines = this.physicalLines.lines;
    this.findings = findings;
    const obstacle = excess ?? this.physicalLines.findObstacle();
    if (obstacle === undefined) return;
    findings.addProblem(obstacle);
    this.next = this.lines.length;
  }

  /** The escape character, known once the first logical line has been read. */
  get escape(): EscapeCharacter {
    return this.directiveReader.escape;
  }

  /** Directives by lower-case name. */
  get directives(): ReadonlyMap<string, string> {
    return this.directiveReader.values;
  }

  /** Returns the next logical line, `undefined` at the end of the file. */
  nextLogicalLine(): LogicalLine | undefined {
    while (this.next < this.lines.length && !this.findings.isFull) {
      const line = this.readLogicalLine();
      if (line !== undefined) return line;
    }
    return undefined;
  }

  private readLogicalLine(): LogicalLine | undefined {
    const index = this.next++;
    const line = this.lines[index] ?? "";
    const text = trimStart(line);
    const wrong = this.directiveReader.take(text);
    if (wrong !== undefined)
      this.report({ ...wrong, culprit: { line: index + 1, column: 1, length: line.length } });
    if (text === "" || text.startsWith("#")) return undefined;
    const piece = { offset: 0, line: index + 1, column: line.length - text.length + 1 };
    const kept = withoutContinuation(text, this.escape);
    if (kept !== undefined) return this.readContinuedLine(kept, piece);
    const title = text.trim();
    const range = { start: index + 1, end: index + 1 };
    return this.withHeredocs({ text, original: title, title, map: new LineMap([piece]), range });
  }

  private readContinuedLine(first: string, piece: Piece): LogicalLine | undefined {
    const start = piece.line - 1;
    const pieces = [piece];
    const parts = [first];
    let text = first;
    let isContinued = true;
    let blankLine: number | undefined;
    while (isContinued && this.next < this.lines.length) {
      const index = this.next++;
      const line = this.lines[index] ?? "";
      const trimmed = trimStart(line);
      if (trimmed.startsWith("#")) continue;
      if (trimmed === "") {
        blankLine ??= index + 1;
        continue;
      }
      // Only an instruction's first line loses its leading white space.
      const kept = withoutContinuation(line, this.escape);
      isContinued = kept !== undefined;
      pieces.push({ offset: text.length, line: index + 1, column: 1 });
      text += kept ?? line;
      parts.push(kept ?? line);
    }
    const range = { start: start + 1, end: this.next };
    if (blankLine !== undefined) {
      const message = `Empty continuation line found in: ${visible(truncate(text.trim(), maxQuotationLength))}`;
      this.findings.addWarning({
        rule: "NoEmptyContinuation",
        message,
        range: { start: blankLine, end: blankLine },
      });
    }
    const title = joinLines(parts);
    if (title === "") {
      const culprit = { line: start + 1, column: 1, length: (this.lines[start] ?? "").length };
      this.report({
        message: "the line continues, but nothing follows",
        expected: "an instruction",
        culprit,
      });
      return undefined;
    }
    const original = parts.length === 1 ? title : text.trim();
    return this.withHeredocs({ text, original, title, map: new LineMap(pieces), range });
  }

  private withHeredocs(line: Omit<LogicalLine, "heredocs" | "heredocText">): LogicalLine {
    if (!line.text.includes("<<")) return { ...line, heredocs: [], heredocText: "" };
    const read = this.readHeredocs(line.text, line.map, line.range);
    return { ...line, range: { start: line.range.start, end: this.next }, ...read };
  }

  private readHeredocs(text: string, map: LineMap, range: LineRange) {
    const heredocs: HereDocument[] = [];
    let heredocText = "";
    let offset = 0;
    for (const { written, name, expand, stripsTabs } of heredocMarkers(text)) {
      const start = this.next;
      offset = Math.max(offset, text.indexOf(written, offset));
      let content = "";
      let isOpen = true;
      while (isOpen && this.next < this.lines.length) {
        const index = this.next++;
        const line = this.lines[index] ?? "";
        isOpen = (stripsTabs ? line.replace(/^\t+/, "") : line) !== name;
        if (isOpen) content += this.physicalLines.withEnd(index);
      }
      if (isOpen) {
        const expected = `a line that contains only ${name}`;
        const culprit = map.locate(offset, written.length);
        this.report({ message: "unterminated heredoc", expected, range, culprit });
        break;
      }
      const bodyRange = { start: start + 1, end: this.next };
      heredocs.push({ name, content: stripsTabs ? stripTabs(content) : content, expand, range: bodyRange });
      heredocText += `\n${content}${name}`;
      offset += written.length;
    }
    return { heredocs, heredocText };
  }

  private report(problem: Omit<Problem, "range"> & { range?: LineRange; culprit: Culprit }): void {
    const { line } = problem.culprit;
    this.findings.addProblem({ range: { start: line, end: line }, ...problem });
  }
}

/** Joins lines for display, with one blank for all white space between them. */
function joinLines(lines: readonly string[]): string {
  if (lines.length === 1) return lines[0]?.trim() ?? "";
  let joined = "";
  let endsInSpace = false;
  for (const line of lines) {
    const content = line.trim();
    if (content === "") {
      endsInSpace ||= line !== "";
      continue;
    }
    if (joined !== "" && (endsInSpace || !line.startsWith(content))) joined += " ";
    joined += content;
    endsInSpace = !line.endsWith(content);
  }
  return joined;
}

/**
 * Returns the line without its continuation character, or `undefined` if it has none. An escape character before the last one
 * escapes it, even if it is escaped itself (BuildKit's rule).
 */
function withoutContinuation(line: string, escapeCharacter: string): string | undefined {
  let end = line.length;
  let last = line.charCodeAt(end - 1);
  while (last === 32 || last === 9) last = line.charCodeAt(--end - 1);
  if (last !== escapeCharacter.charCodeAt(0) || line[end - 2] === escapeCharacter) return undefined;
  return line.slice(0, end - 1);
}

/** The start of a physical line's piece in the logical line, and its place in the file. */
interface Piece {
  offset: number;
  line: number;
  column: number;
}

/** Maps places in a logical line to places in the file. */
class LineMap {
  private readonly pieces: readonly Piece[];

  constructor(pieces: readonly Piece[]) {
    this.pieces = pieces;
  }

  /** Returns the place of a part of the logical line, up to the end of its first physical line. */
  locate(offset: number, length: number): Culprit {
    const next = this.pieces.findIndex((piece) => piece.offset > offset);
    const piece = this.pieces.at(next < 0 ? -1 : next - 1) ?? { offset: 0, line: 1, column: 1 };
    const room = (this.pieces[next]?.offset ?? Number.POSITIVE_INFINITY) - offset;
    const { line, column } = piece;
    return { line, column: column + offset - piece.offset, length: Math.max(1, Math.min(length, room)) };
  }
}

/** The size of BuildKit's line buffer in bytes, line end included. */
const maxLineBytes = 64 * 1024 - 1;
/** The size limit of a file: about ten times the size of the largest known Dockerfiles. */
const maxCharacters = 2 * 1024 * 1024;

/** The lines of a text. Only a line feed ends a line. */
class PhysicalLines {
  /** Lines without line feeds and the carriage returns before them. */
  readonly lines: readonly string[];
  private readonly asWritten: string[];
  private readonly hasNul: boolean;
  /** True if the last line has no line feed. */
  private readonly hasOpenEnd: boolean = false;

  constructor(text: string) {
    this.hasNul = text.includes("\0");
    this.asWritten = (text.startsWith("\ufeff") ? text.slice(1) : text).split("\n");
    if (this.asWritten.at(-1) === "") this.asWritten.pop();
    else this.hasOpenEnd = true;
    this.lines = text.includes("\r")
      ? this.asWritten.map((line) => line.replace(/\r+$/, ""))
      : this.asWritten;
  }

  /** Returns a line with its line feed. */
  withEnd(index: number): string {
    const isOpen = this.hasOpenEnd && index === this.asWritten.length - 1;
    return (this.asWritten[index] ?? "") + (isOpen ? "" : "\n");
  }

  /** Returns a problem for which the text is not parsed at all, since there would be one per line. */
  findObstacle(): Problem | undefined {
    if (this.hasNul) {
      const index = this.lines.findIndex((line) => line.includes("\0"));
      const column = (this.lines[index] ?? "").indexOf("\0") + 1;
      return obstacle("the file contains a NUL character", "a text file in UTF-8", index, column);
    }
    const index = this.findLongLine();
    if (index < 0) return undefined;
    const message = `dockerfile line greater than max allowed size of ${maxLineBytes}`;
    return obstacle(message, "shorter lines, joined by a continuation character", index, 1);
  }

  private findLongLine(): number {
    for (let index = 0; index < this.asWritten.length; index++) {
      const line = this.asWritten[index] ?? "";
      if (line.length * 3 >= maxLineBytes && Buffer.byteLength(line) >= maxLineBytes) return index;
    }
    return -1;
  }
}

/** Returns a problem if the text is so large that it is not even split into lines. */
function findExcess(text: string): Problem | undefined {
  if (text.length <= maxCharacters) return undefined;
  const message = "the file is too large";
  return obstacle(message, `a Dockerfile of ${maxCharacters} characters at most`, 0, 1);
}

function obstacle(message: string, expected: string, index: number, column: number): Problem {
  const line = index + 1;
  return { message, expected, range: { start: line, end: line }, culprit: { line, column, length: 1 } };
}
