import type { Problem } from "../problems/problem.ts";

/** The size of BuildKit's line buffer in bytes, line end included. */
const maximumLineBytes = 64 * 1024 - 1;
/** About ten times the size of the largest known Dockerfiles. */
const maximumCharacters = 2 * 1024 * 1024;

/** The lines of a text. Only a line feed ends a line. */
export class PhysicalLines {
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
    const message = `dockerfile line greater than max allowed size of ${maximumLineBytes}`;
    return obstacle(message, "shorter lines, joined by a continuation character", index, 1);
  }

  private findLongLine(): number {
    for (let index = 0; index < this.asWritten.length; index++) {
      const line = this.asWritten[index] ?? "";
      if (line.length * 3 >= maximumLineBytes && Buffer.byteLength(line) >= maximumLineBytes) return index;
    }
    return -1;
  }
}

/** Returns a problem if the text is so large that it is not even split into lines. */
export function findExcess(text: string): Problem | undefined {
  if (text.length <= maximumCharacters) return undefined;
  const message = "the file is too large";
  return obstacle(message, `a Dockerfile of ${maximumCharacters} characters at most`, 0, 1);
}

function obstacle(message: string, expected: string, index: number, column: number): Problem {
  const line = index + 1;
  return { message, expected, range: { start: line, end: line }, culprit: { line, column, length: 1 } };
}
