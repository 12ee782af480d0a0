import { isUtf8 } from "node:buffer";
import type { DockerfileWarning } from "../instruction.ts";
import type { LogicalLine } from "./source.ts";

/** The mark in place of bytes that are not UTF-8: half of a surrogate pair, which no text in UTF-8 contains. */
const mark = "\udcff";
const replacement = /\ufffd/g;

/**
 * Decodes a Dockerfile. Bytes that are not UTF-8 become marks for the parser, which warns about them in instructions. In comments,
 * where some old Dockerfiles have them, they do no harm.
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

/** Returns the lines with marks, counted from 1. */
export function findMarkedLines(text: string): readonly number[] {
  if (text.isWellFormed()) return [];
  return text.split("\n").flatMap((line, index) => (line.includes(mark) ? [index + 1] : []));
}

/** Returns a warning if an instruction, with its here-documents, has bytes that are not UTF-8. */
export function invalidTextIn(
  { text, heredocText, range }: LogicalLine,
  marked: readonly number[],
  lines: readonly string[],
): DockerfileWarning | undefined {
  const own = marked.filter((line) => range.start <= line && line <= range.end);
  if (own.length === 0 || !`${text}${heredocText}`.includes("\ufffd")) return undefined;
  const isComment = (line: number) => /^\s*#/.test(lines[line - 1] ?? "");
  const line = own.find((each) => !isComment(each)) ?? own[0] ?? range.start;
  return {
    rule: "NotUtf8",
    message: "the line is not UTF-8 text: what is invalid becomes the character U+FFFD, as in Docker",
    range: { start: line, end: line },
  };
}
