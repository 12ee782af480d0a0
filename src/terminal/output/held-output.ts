import { StringDecoder } from "node:string_decoder";
import type { Ran } from "../../builder/events.ts";
import type { OutputChunk } from "../../service/service.ts";
import type { Log, LogLevel } from "../log.ts";
import { describeTruncation } from "../quantity.ts";
import { sanitizeRow } from "../terminal-text.ts";

type StreamName = OutputChunk["stream"];

/** Keeps the output of running commands until they end; large output on disk, not in memory. */
interface HeldOutput {
  hold(step: number, chunk: OutputChunk): void;
  /** True if a step has written something. */
  has(step: number): boolean;
  /**
   * Shows and drops a step's output: the lines of both streams in the order in which they ended. Output of an abandoned step is
   * only dropped. `label` precedes the name of the first stream in a header; without a label there is no header.
   */
  flush(step: number, ran: Ran, label: string | undefined): void;
  /** Drops a step's output. */
  drop(step: number): void;
  close(): void;
}

interface HeldOutputOptions {
  log: Log;
  logLevel: LogLevel;
  /** Writes whole lines of output to the log's stream. */
  write: (lines: string) => void;
  openSpoolFile: () => SpoolFile;
  /** True to show only the output of failed commands. */
  onlyFailures?: boolean;
}

/** A private file, which is removed when it is closed. */
export interface SpoolFile {
  append(text: string): void;
  /** Reads from `position` into the buffer; returns the number of bytes. */
  read(buffer: Uint8Array, position: number): number;
  close(): void;
}

/**
 * Output of a failed command is shown at every `logLevel`: if only errors are shown, it is part of the error.
 */
export function createHeldOutput({
  log,
  logLevel,
  write,
  openSpoolFile,
  onlyFailures = false,
}: HeldOutputOptions): HeldOutput {
  const steps = new Map<number, MergedOutput>();
  const isShown = logLevel === "info" || logLevel === "debug";

  function take(step: number): MergedOutput | undefined {
    const output = steps.get(step);
    steps.delete(step);
    return output;
  }

  return {
    hold(step, chunk) {
      const output = steps.getOrInsertComputed(
        step,
        () => new MergedOutput(chunk.stream, new Spool(openSpoolFile)),
      );
      output.append(chunk);
    },
    has: (step) => steps.has(step),
    flush(step, ran, label) {
      const output = take(step);
      if (output !== undefined && ((isShown && !onlyFailures) || !ran.succeeded) && ran.abandoned !== true) {
        if (label !== undefined)
          log[isShown || ran.succeeded ? "info" : "error"](`${label}${output.firstStream}:`);
        for (const lines of output.lines()) write(lines);
      }
      output?.close();
      for (const stream of ["stdout", "stderr"] as const) {
        const { truncated, bytes } = ran[stream];
        if (truncated) log.warn(describeTruncation(`${label ?? ""}${stream}`, bytes));
      }
    },
    drop: (step) => take(step)?.close(),
    close() {
      for (const output of steps.values()) output.close();
      steps.clear();
    },
  };
}

/** The streams of one command as one text, in which each line is whole. */
class MergedOutput {
  readonly firstStream: StreamName;
  readonly #spool: Spool;
  /** The unfinished line of each stream. */
  readonly #open = { stdout: "", stderr: "" };

  constructor(firstStream: StreamName, spool: Spool) {
    this.firstStream = firstStream;
    this.#spool = spool;
  }

  append({ stream, text }: OutputChunk): void {
    const end = text.lastIndexOf("\n") + 1;
    if (end > 0) {
      this.#spool.append(this.#open[stream] + text.slice(0, end));
      this.#open[stream] = "";
    }
    this.#open[stream] += text.slice(end);
    if (this.#open[stream].length < maxOpenLine) return;
    this.#spool.append(this.#open[stream]);
    this.#open[stream] = "";
  }

  /** Yields all text in groups of whole lines. */
  *lines(): Generator<string> {
    for (const stream of ["stdout", "stderr"] as const) {
      const rest = this.#open[stream];
      if (rest !== "") this.#spool.append(`${rest}\n`);
    }
    yield* this.#spool.lines();
  }

  close(): void {
    this.#spool.close();
  }
}

/** A longer line is not held back: a progress bar that is redrawn by carriage returns is one endless line. */
const maxOpenLine = 64 * 1024;
/** The number of characters that are kept in memory. */
const maxInMemory = 256 * 1024;
const readBytes = 64 * 1024;
/** A longer line is split: a progress bar that is redrawn by carriage returns can be one line of 1 GiB. */
const maxLine = 1024 * 1024;

/** A text that is written once and read once. */
class Spool {
  readonly #openFile: () => SpoolFile;
  #file: SpoolFile | undefined;
  #parts: string[] = [];
  #characters = 0;

  constructor(openFile: () => SpoolFile) {
    this.#openFile = openFile;
  }

  append(text: string): void {
    this.#parts.push(text);
    this.#characters += text.length;
    if (this.#characters < maxInMemory) return;
    try {
      this.#file ??= this.#openFile();
      this.#file.append(this.#parts.join(""));
      this.#parts = [];
      this.#characters = 0;
    } catch {
      // The disk is full, or its directory is gone. The text stays in memory until the next try.
      this.#characters = 0;
    }
  }

  /** Yields all text in groups of whole lines. Adds a line feed at the end if it is missing. */
  *lines(): Generator<string> {
    let open = "";
    for (const text of this.#pieces()) {
      const all = open + text;
      const end = all.lastIndexOf("\n") + 1;
      open = all.slice(end);
      if (end > 0) yield all.slice(0, end);
      if (open.length < maxLine) continue;
      yield `${open}\n`;
      open = "";
    }
    if (open !== "") yield `${open}\n`;
  }

  *#pieces(): Generator<string> {
    const decoder = new StringDecoder("utf8");
    const buffer = Buffer.allocUnsafe(readBytes);
    let position = 0;
    for (;;) {
      const count = this.#file?.read(buffer, position) ?? 0;
      if (count === 0) break;
      position += count;
      yield decoder.write(buffer.subarray(0, count));
    }
    yield* this.#parts;
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
    this.#parts = [];
  }
}

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
