import type { OutputChunk } from "../service/service.ts";

/** The output of a step, of which the beginning and the end are kept. */
export interface OutputText {
  append(chunk: OutputChunk): void;
  /** Returns what is kept so far, and the number of characters that were written. */
  read(): KeptOutput;
}

interface KeptOutput {
  /** Whole lines of both streams, in the order of their ends. */
  text: string;
  /** The number of characters in all. */
  length: number;
}

/** Numbers of characters. The end is longer, since an error is there. */
const maxHead = 64 * 1024;
const maxTail = 192 * 1024;
/** A longer line is not held back: a progress bar that is redrawn by carriage returns is one endless line. */
const maxOpenLine = 16 * 1024;

export function createOutputText(): OutputText {
  let head = "";
  let length = 0;
  let parts: string[] = [];
  let tailLength = 0;
  /** Unfinished lines by stream. */
  const open = { stdout: "", stderr: "" };

  function add(text: string): void {
    const room = parts.length === 0 ? maxHead - head.length : 0;
    if (text.length <= room) {
      head += text;
      return;
    }
    parts.push(text);
    tailLength += text.length;
    if (tailLength > 2 * maxTail) trim();
  }

  function trim(): void {
    const rest = endOf(parts.join(""), maxTail);
    parts = [rest];
    tailLength = rest.length;
  }

  return {
    append({ stream, text }) {
      length += text.length;
      const end = text.lastIndexOf("\n") + 1;
      if (end > 0) {
        add(open[stream] + text.slice(0, end));
        open[stream] = text.slice(end);
      } else open[stream] += text;
      if (open[stream].length < maxOpenLine) return;
      add(open[stream]);
      open[stream] = "";
    },
    read() {
      const rest = [open.stdout, open.stderr].filter((line) => line !== "").map((line) => `${line}\n`);
      const all = [...parts, ...rest].join("");
      const tail = endOf(all, maxTail);
      const dropped = length + rest.length - head.length - tail.length;
      if (dropped <= 0) return { text: head + all, length };
      const line = head === "" || head.endsWith("\n") ? "" : "\n";
      return { text: `${head}${line}[... ${dropped} characters are not kept ...]\n${tail}`, length };
    },
  };
}

/** Returns whole lines of the text's end. */
function endOf(text: string, length: number): string {
  if (text.length <= length) return text;
  const rest = text.slice(-length);
  const line = rest.indexOf("\n") + 1;
  return line > 0 && line < rest.length ? rest.slice(line) : rest;
}
