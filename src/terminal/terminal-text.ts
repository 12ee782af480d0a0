/** What a command wrote, made fit for a terminal on which something else is drawn too. */
import { paintLevel } from "./color.ts";

/** Control sequences (CSI, OSC, DCS and their kind), by their grammar in ECMA-48; unfinished ones end with the line. */
const sequences =
  /\u001b\[[0-?]*[ -/]*(?:[@-~]|$)|\u001b\][^\u0007\u001b\n]*(?:\u0007|\u001b\\)?|\u001b[PX^_][^\u001b\n]*(?:\u001b\\)?|\u001b[ -/]*[0-~]?/gm;
const colors = /^\u001b\[[\d;:]*m$/;
const controls = /[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g;
/** These turn the order of what follows. */
const directions = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const tabWidth = 8;
const resetColor = "\u001b[0m";

/**
 * Lines as a terminal would show them in the end: of what a carriage return or backspaces overwrite, the last text.
 * Nothing of them moves the cursor; colours stay if they are wanted, and none reaches beyond its line.
 */
export function sanitizeLines(text: string, keepsColors: boolean): string {
  if (!/[\r\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(text)) return text;
  return text
    .split("\n")
    .map((line) => sanitizeLine(overwritten(line), keepsColors))
    .join("\n");
}

interface Stream {
  isTerminal: boolean;
  hasColor: boolean;
}

/** Log lines as a stream gets them. */
export function formatLogLines(text: string, stream: Stream): string {
  const shown = formatOutput(text, stream);
  return stream.hasColor ? paintLevel(shown) : shown;
}

/** What a command wrote, as a stream gets it: a terminal tame lines, a file or a pipe what was written. */
export function formatOutput(text: string, { isTerminal, hasColor }: Stream): string {
  return isTerminal ? sanitizeLines(text, hasColor) : text;
}

/** One row without any control character: of what is overwritten, the last text; tabs are spaces. */
export function sanitizeRow(line: string): string {
  return sanitizeLine(overwritten(line), false).replaceAll("\t", "    ").replace(directions, "");
}

function overwritten(line: string): string {
  const last = line.split("\r").findLast((part) => part !== "") ?? "";
  return last.includes("\b") ? typedOver(last) : last;
}

/** Backspaces go back by a column and erase nothing. Colours are left out: they would be those of characters that are gone. */
function typedOver(line: string): string {
  const columns: (string | undefined)[] = [];
  let at = 0;
  for (const { segment } of new Intl.Segmenter().segment(line.replace(sequences, ""))) {
    const width = Bun.stringWidth(segment);
    if (segment === "\b") at = Math.max(0, at - 1);
    else if (segment === "\t") at += tabWidth - (at % tabWidth);
    else if (width > 0) {
      columns[at] = segment;
      // Further columns of a wide character hold nothing of their own.
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
