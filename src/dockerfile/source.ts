import { DirectiveReader, type EscapeCharacter } from "./directives.ts";
import { heredocMarkers, stripTabs } from "./heredoc.ts";
import type { DockerfileWarning, HereDocument, LineRange } from "./instruction.ts";
import type { Culprit, Problem } from "./problem.ts";
import { trimStart } from "./space.ts";

/** One instruction's text: physical lines joined at their continuation characters, comments and blank lines left out. */
export interface LogicalLine {
  text: string;
  range: LineRange;
  heredocs: readonly HereDocument[];
  /** The bodies as written, each with the line that ends it, for a shell that reads here-documents itself. */
  heredocText: string;
  /** Where a stretch of `text` stands in the file. */
  locate(offset: number, length: number): Culprit;
}

export interface Source {
  /** Physical lines without their ends. */
  lines: readonly string[];
  escape: EscapeCharacter;
  directives: ReadonlyMap<string, string>;
  logicalLines: readonly LogicalLine[];
  warnings: readonly DockerfileWarning[];
  problems: readonly Problem[];
}

/** BuildKit reads lines through a buffer of this many bytes, line end included. */
const maximumLineBytes = 64 * 1024 - 1;

/** Where a piece of a physical line landed in the logical line. */
interface Piece {
  offset: number;
  line: number;
  column: number;
}

/** Text to logical lines (Dockerfile reference, "Format"). Never throws: what is wrong is among the problems. */
export function readSource(text: string): Source {
  return new SourceReader(text).read();
}

class SourceReader {
  private readonly rawLines: string[];
  /** The last line has no line feed. */
  private readonly hasOpenEnd: boolean = false;
  private readonly lines: readonly string[];
  private readonly directives = new DirectiveReader();
  private readonly logicalLines: LogicalLine[] = [];
  private readonly warnings: DockerfileWarning[] = [];
  private readonly problems: Problem[] = [];
  /** Index of the next physical line. */
  private next = 0;

  constructor(text: string) {
    // A line ends at a line feed and at nothing else; carriage returns in front of it are not content.
    this.rawLines = (text.startsWith("\ufeff") ? text.slice(1) : text).split("\n");
    if (this.rawLines.at(-1) === "") this.rawLines.pop();
    else this.hasOpenEnd = true;
    this.lines = text.includes("\r") ? this.rawLines.map((line) => line.replace(/\r+$/, "")) : this.rawLines;
  }

  read(): Source {
    if (this.isText()) while (this.next < this.lines.length) this.readLogicalLine();
    const { lines, logicalLines, warnings, problems, directives } = this;
    return {
      lines,
      logicalLines,
      warnings,
      problems,
      escape: directives.escape,
      directives: directives.values,
    };
  }

  /** One problem instead of one a line for a file in another encoding, and none of the lines Docker would not read. */
  private isText(): boolean {
    const nul = this.rawLines.findIndex((line) => line.includes("\0"));
    if (nul >= 0) {
      const column = (this.lines[nul] ?? "").indexOf("\0") + 1;
      const expected = "a text file in UTF-8";
      this.report("the file holds a NUL character", { line: nul + 1, column, length: 1 }, { expected });
      return false;
    }
    const long = this.rawLines.findIndex((line) => isTooLong(line));
    if (long < 0) return true;
    const message = `dockerfile line greater than max allowed size of ${maximumLineBytes}`;
    const expected = "shorter lines, joined by a continuation character";
    this.report(message, { line: long + 1, column: 1, length: 1 }, { expected });
    return false;
  }

  private readLogicalLine(): void {
    const start = this.next;
    const pieces: Piece[] = [];
    let text = "";
    let isContinued = true;
    let blankLine: number | undefined;
    while (isContinued && this.next < this.lines.length) {
      const index = this.next++;
      const isFirst = index === start;
      const line = this.lines[index] ?? "";
      const trimmed = trimStart(line);
      const error = this.directives.take(isFirst ? trimmed : line);
      if (error !== undefined) this.report(error, { line: index + 1, column: 1, length: line.length });
      if (trimmed.startsWith("#")) {
        if (isFirst) return;
        continue;
      }
      if (trimmed === "") {
        if (isFirst) return;
        blankLine ??= index + 1;
        continue;
      }
      // Leading white space is dropped from an instruction's first line only.
      const content = isFirst ? trimmed : line;
      const kept = withoutContinuation(content, this.directives.escape);
      isContinued = kept !== undefined;
      pieces.push({ offset: text.length, line: index + 1, column: line.length - content.length + 1 });
      text += kept ?? content;
    }
    const range = { start: start + 1, end: this.next };
    if (blankLine !== undefined) {
      const message = `Empty continuation line found in: ${text.trim()}`;
      this.warnings.push({
        rule: "NoEmptyContinuation",
        message,
        range: { start: blankLine, end: blankLine },
      });
    }
    if (text.trim() === "") {
      const culprit = { line: start + 1, column: 1, length: (this.lines[start] ?? "").length };
      this.report("the line continues, but nothing follows", culprit, { expected: "an instruction" });
      return;
    }
    const locate = (offset: number, length: number) => locateIn(pieces, offset, length);
    const { heredocs, heredocText } = this.readHeredocs(text, range, locate);
    this.logicalLines.push({ text, range: { ...range, end: this.next }, heredocs, heredocText, locate });
  }

  private readHeredocs(text: string, range: LineRange, locate: LogicalLine["locate"]) {
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
        if (isOpen) content += this.rawLine(index);
      }
      if (isOpen) {
        const expected = `a line that reads ${name} and nothing else`;
        this.report("unterminated heredoc", locate(offset, written.length), { range, expected });
        break;
      }
      const bodyRange = { start: start + 1, end: this.next };
      heredocs.push({ name, content: stripsTabs ? stripTabs(content) : content, expand, range: bodyRange });
      heredocText += `\n${content}${name}`;
      offset += written.length;
    }
    return { heredocs, heredocText };
  }

  private rawLine(index: number): string {
    const isOpen = this.hasOpenEnd && index === this.rawLines.length - 1;
    return (this.rawLines[index] ?? "") + (isOpen ? "" : "\n");
  }

  private report(
    message: string,
    culprit: Culprit,
    more: { expected?: string; range?: LineRange } = {},
  ): void {
    const range = more.range ?? { start: culprit.line, end: culprit.line };
    const expected = more.expected === undefined ? {} : { expected: more.expected };
    this.problems.push({ message, range, culprit, ...expected });
  }
}

function isTooLong(line: string): boolean {
  return line.length * 3 >= maximumLineBytes && Buffer.byteLength(line) >= maximumLineBytes;
}

/**
 * The line without its continuation character, or undefined where it has none. An escape character in front of the
 * last one takes its meaning, even where that one is escaped itself (BuildKit's rule).
 */
function withoutContinuation(line: string, escapeCharacter: string): string | undefined {
  let end = line.length;
  while (end > 0 && (line[end - 1] === " " || line[end - 1] === "\t")) end--;
  if (line[end - 1] !== escapeCharacter || line[end - 2] === escapeCharacter) return undefined;
  return line.slice(0, end - 1);
}

function locateIn(pieces: readonly Piece[], offset: number, length: number): Culprit {
  const index = Math.max(
    0,
    pieces.findLastIndex((candidate) => candidate.offset <= offset),
  );
  const { offset: start, line, column } = pieces[index] ?? { offset: 0, line: 1, column: 1 };
  // What goes on in the next line is not shown.
  const room = (pieces[index + 1]?.offset ?? Number.POSITIVE_INFINITY) - offset;
  return { line, column: column + offset - start, length: Math.max(1, Math.min(length, room)) };
}
