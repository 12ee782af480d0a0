import type { OutputChunk } from "../../service/service.ts";
import { sanitizeRow } from "../terminal-text.ts";

/** The end of a command's output so far. */
export interface OutputTail {
  /** Finished lines, the newest last. */
  lines: readonly string[];
  /** The unfinished line of each stream. */
  open: Readonly<Record<OutputChunk["stream"], string>>;
}

export const emptyTail: OutputTail = { lines: [], open: { stdout: "", stderr: "" } };

const maxLines = 50;
/** A progress bar that is redrawn by carriage returns is one endless line. */
const maxLineLength = 4096;

export function appendOutput(tail: OutputTail, { stream, text }: OutputChunk): OutputTail {
  const parts = (tail.open[stream] + text.slice(-maxLines * maxLineLength)).split("\n");
  const open = (parts.pop() ?? "").slice(-maxLineLength);
  return {
    lines: [...tail.lines, ...parts.slice(-maxLines)].slice(-maxLines),
    open: { ...tail.open, [stream]: open },
  };
}

/** Returns the last rows, at most `count`, sanitized and without blank ones. */
export function tailRows({ lines, open }: OutputTail, count: number): string[] {
  if (count <= 0) return [];
  return [...lines, open.stdout, open.stderr]
    .map((line) => sanitizeRow(line.slice(-maxLineLength)))
    .filter((row) => row.trim() !== "")
    .slice(-count);
}
