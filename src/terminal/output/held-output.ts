import { StringDecoder } from "node:string_decoder";
import type { Ran } from "../../builder/events.ts";
import type { OutputChunk } from "../../service/service.ts";
import type { Log, LogLevel } from "../log.ts";
import { describeTruncation } from "../quantity.ts";

type StreamName = OutputChunk["stream"];

/** What running commands have written, for when they are over: beyond some size on the disk, not in memory. */
interface HeldOutput {
  hold(step: number, chunk: OutputChunk): void;
  /** All of a step's output, one stream after the other, unless the step was abandoned. It is held no longer. */
  tell(step: number, ran: Ran, label: string): void;
  close(): void;
}

interface HeldOutputOptions {
  log: Log;
  logLevel: LogLevel;
  /** Writes whole lines of a command's to where the log goes. */
  write: (lines: string) => void;
  openSpoolFile: () => SpoolFile;
  /** Output of a command that succeeds is not told at all. */
  onlyFailures?: boolean;
}

/** A file of nobody else's, which is gone when it is closed. */
export interface SpoolFile {
  append(text: string): void;
  /** Fills the buffer from `position` on as far as there is something; returns the number of bytes. */
  read(buffer: Uint8Array, position: number): number;
  close(): void;
}

/**
 * What a failing command has written is told at every `logLevel`: where one shows errors only, it is part of the error.
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
    tell(step, ran, label) {
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

/** Characters that are kept in memory. */
const maxInMemory = 256 * 1024;
const readBytes = 64 * 1024;
/** A longer line is broken: some 1 GiB of a progress bar that is redrawn by carriage returns is one line. */
const maxLine = 1024 * 1024;

/** Text that is written once and read once. */
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
      // The disk is full, or its directory is gone: then in memory, until there is more.
      this.#characters = 0;
    }
  }

  /** All of it, some whole lines at a time; the last one is ended if it has no end. */
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
