import { isUtf8 } from "node:buffer";
import type { DockerfileWarning } from "../instruction.ts";
import type { LogicalLine } from "./source.ts";

/** Stands for what is not UTF-8. Half of a surrogate pair, which no text in UTF-8 contains. */
const mark = "\udcff";
const replacement = /\ufffd/g;

/**
 * Decodes a Dockerfile. What is not UTF-8 gets a mark for the parser, which warns of it in instructions. Some old Dockerfiles have
 * it in comments, where it does no harm.
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

/** Returns a warning if an instruction, with its here-documents, has bytes that are not UTF-8. */
export function findMarkedBytes(
  { text, heredocText, range }: LogicalLine,
  lines: readonly string[],
): DockerfileWarning | undefined {
  if (text.isWellFormed() && heredocText.isWellFormed()) return undefined;
  const index = lines.findIndex((line, index) => index + 1 >= range.start && line.includes(mark));
  return {
    rule: "NotUtf8",
    message: "the line is not UTF-8 text: what is invalid becomes the character U+FFFD, as in Docker",
    range: { start: index + 1, end: index + 1 },
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
