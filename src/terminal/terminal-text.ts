/** Makes a command's output safe for a terminal on which other things are drawn. */
import { paintLevel } from "./color.ts";
import { wrapWords } from "./fit.ts";
import { shortenIdsIn } from "./short-id.ts";

/** Control sequences (CSI, OSC, DCS and similar) by the grammar of ECMA-48; unfinished ones end with the line. */
const sequences =
  /\u001b\[[0-?]*[ -/]*(?:[@-~]|$)|\u001b\][^\u0007\u001b\n]*(?:\u0007|\u001b\\)?|\u001b[PX^_][^\u001b\n]*(?:\u001b\\)?|\u001b[ -/]*[0-~]?/gm;
const colors = /^\u001b\[[\d;:]*m$/;
const controls = /[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g;
/** Characters that change the direction of text. */
const directions = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const tabWidth = 8;
const resetColor = "\u001b[0m";

/**
 * Returns lines as a terminal would finally show them: the last text where carriage returns or backspaces overwrite. No sequence
 * moves the cursor. Colours stay if wanted, and end with their line.
 */
export function sanitizeLines(text: string, keepsColors: boolean): string {
  if (!/[\r\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(text)) return text;
  return text
    .split("\n")
    .map((line) => sanitizeLine(applyCarriageReturns(line), keepsColors))
    .join("\n");
}

interface Stream {
  isTerminal: boolean;
  hasColor: boolean;
}

/** Formats log lines for a stream: for a terminal with short ids, and wrapped between words. */
export function formatLogLines(text: string, stream: Stream & { columns: number }): string {
  const formatted = formatOutput(stream.isTerminal ? shortenIdsIn(text) : text, stream);
  const shown = stream.isTerminal ? wrapSentences(formatted, stream.columns) : formatted;
  return stream.hasColor ? paintLevel(shown) : shown;
}

/** Wraps long lines between words. Commands in backticks, indented lines and JSON stay whole, so that they can be pasted. */
function wrapSentences(text: string, columns: number): string {
  return text
    .split("\n")
    .map((line) =>
      /^[\s{]/.test(line) || Bun.stringWidth(line) <= columns
        ? line
        : wrapSentence("", line, { indent: 0, columns }),
    )
    .join("\n");
}

/** No row begins with a log level within a line: another program's text could pass for a line of the log. */
const wordPattern = /(?:^| )((?:`[^`]*`|[^ ]| (?=\[(?:DEBUG|INFO|WARN|ERROR)\]))*)/g;

/** Wraps a line after `beginning`, as `wrapWords` does, and leaves commands in backticks whole. */
export function wrapSentence(
  beginning: string,
  line: string,
  form: { indent: number; columns: number },
): string {
  const words = [...line.matchAll(wordPattern)].map(([, word = ""]) => word);
  return wrapWords(beginning, words, form);
}

/** Formats a command's output for a stream: sanitized for a terminal, unchanged for a file or a pipe. */
export function formatOutput(text: string, { isTerminal, hasColor }: Stream): string {
  return isTerminal ? sanitizeLines(text, hasColor) : text;
}

/** Returns one row without control characters: overwritten text is left out, and tabs become spaces. */
export function sanitizeRow(line: string): string {
  return sanitizeLine(applyCarriageReturns(line), false).replaceAll("\t", "    ").replace(directions, "");
}

function applyCarriageReturns(line: string): string {
  const last = line.split("\r").findLast((part) => part !== "") ?? "";
  return last.includes("\b") ? applyBackspaces(last) : last;
}

/** Applies backspaces, which move back a column and erase nothing. Drops colours, which could belong to overwritten text. */
function applyBackspaces(line: string): string {
  const columns: (string | undefined)[] = [];
  let at = 0;
  for (const { segment } of new Intl.Segmenter().segment(line.replace(sequences, ""))) {
    const width = Bun.stringWidth(segment);
    if (segment === "\b") at = Math.max(0, at - 1);
    else if (segment === "\t") at += tabWidth - (at % tabWidth);
    else if (width > 0) {
      columns[at] = segment;
      // The other columns of a wide character are empty.
      for (let next = at + 1; next < at + width; next++) columns[next] = "";
      at += width;
    }
  }
  return Array.from(columns, (character) => character ?? " ").join("");
}

function sanitizeLine(line: string, keepsColors: boolean): string {
  const tamed = line
    .replace(sequences, (sequence) => (keepsColors && colors.test(sequence) ? sequence : ""))
    .replace(controls, "");
  return tamed.includes("\u001b") ? `${tamed}${resetColor}` : tamed;
}
