import { StringDecoder } from "node:string_decoder";
import type { Ran } from "../../builder/events.ts";
import type { OutputChunk } from "../../service/service.ts";
import type { Log, LogLevel } from "../log.ts";
import { describeTruncation } from "../quantity.ts";

type StreamName = OutputChunk["stream"];

/** Keeps the output of running commands until they end; large output on disk, not in memory. */
interface HeldOutput {
  hold(step: number, chunk: OutputChunk): void;
  /** Shows and drops a step's output, one stream after the other. Output of an abandoned step is only dropped. */
  flush(step: number, ran: Ran, label: string): void;
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
  const spools = new Map<string, Spool>();
  const isShown = logLevel === "info" || logLevel === "debug";

  function take(step: number, stream: StreamName): Spool | undefined {
    const key = `${step} ${stream}`;
    const spool = spools.get(key);
    spools.delete(key);
    return spool;
  }

  return {
    hold(step, { stream, text }) {
      const key = `${step} ${stream}`;
      const spool = spools.get(key) ?? new Spool(openSpoolFile);
      spools.set(key, spool);
      spool.append(text);
    },
    flush(step, ran, label) {
      for (const stream of ["stdout", "stderr"] as const) {
        const spool = take(step, stream);
        if (spool !== undefined && ((isShown && !onlyFailures) || !ran.succeeded) && ran.abandoned !== true) {
          log[isShown || ran.succeeded ? "info" : "error"](`${label}${stream}:`);
          for (const lines of spool.lines()) write(lines);
        }
        spool?.close();
        const { truncated, bytes } = ran[stream];
        if (truncated) log.warn(describeTruncation(`${label}${stream}`, bytes));
      }
    },
    close() {
      for (const spool of spools.values()) spool.close();
      spools.clear();
    },
  };
}

/** Characters kept in memory. */
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
