import { isUtf8 } from "node:buffer";
import type { Problem } from "../problems/problem.ts";
import type { LogicalLine } from "./source.ts";

/** Stands for what is not UTF-8. Half of a surrogate pair, which no text in UTF-8 contains. */
const mark = "\udcff";
const replacement = /\ufffd/g;

/**
 * Decodes a Dockerfile. What is not UTF-8 gets a mark for the parser: BuildKit accepts it in comments, and some old Dockerfiles
 * have it only there.
 */
export function decodeDockerfile(bytes: Buffer): string {
  const text = bytes.toString();
  if (isUtf8(bytes)) return text;
  let start = 0;
  const lines = text.split("\n").map((line) => {
    const end = bytes.indexOf("\n", start);
    const own = bytes.subarray(start, end < 0 ? bytes.length : end);
    start += own.length + 1;
    return isUtf8(own) ? line : line.replace(replacement, mark);
  });
  return lines.join("\n");
}

/** Returns a problem if an instruction, with its here-documents, has bytes that are not UTF-8. */
export function findMarkedBytes(line: LogicalLine, lines: readonly string[]): Problem | undefined {
  if (line.text.isWellFormed() && line.heredocText.isWellFormed()) return undefined;
  const { range } = line;
  const isMarked = (_: string, index: number) =>
    index + 1 >= range.start && lines[index]?.includes(mark) === true;
  const index = lines.findIndex(isMarked);
  const column = (lines[index] ?? "").indexOf(mark) + 1;
  return {
    message: "the line is not UTF-8 text",
    expected: "a text file in UTF-8",
    range,
    culprit: { line: index + 1, column, length: 1 },
  };
}

/** Returns the line with U+FFFD in place of each mark. */
export function withoutMarks(line: LogicalLine): LogicalLine {
  const { text, original, title, heredocText } = line;
  return {
    ...line,
    ...{ text: text.toWellFormed(), original: original.toWellFormed(), title: title.toWellFormed() },
    heredocText: heredocText.toWellFormed(),
  };
}
