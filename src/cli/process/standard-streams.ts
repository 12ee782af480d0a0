/**
 * Standard input and output, opened as streams only where they are needed: that alone is most of a short command's time. Nor is
 * node:fs loaded before.
 */
import { errorCode } from "../../system-error.ts";
import { wantsColor } from "../../terminal/color.ts";
import type { Input, Output } from "./runtime.ts";

interface OutputOptions {
  descriptor: number;
  open: () => NodeJS.WriteStream;
  environment: Readonly<Record<string, string | undefined>>;
  /** Writing has failed: nobody reads any more, the disk is full. What is written after that is dropped. */
  onError: (error: NodeJS.ErrnoException) => void;
  /** Whether nothing is written from then on. */
  isSilent?: () => boolean;
}

/** Bytes that a pipe takes without anybody reading. */
const directBytes = 64 * 1024;

export function createOutput(options: OutputOptions): Output {
  const { descriptor, open, environment, onError, isSilent = () => false } = options;
  let stream: NodeJS.WriteStream | undefined;
  let knownTerminal: boolean | undefined;
  let room = directBytes;
  let hasFailed = false;
  /** The newest write through the stream: once it has ended, all before it have. */
  let written: Promise<void> = Promise.resolve();

  function fail(error: unknown): void {
    if (hasFailed) return;
    hasFailed = true;
    onError(error as NodeJS.ErrnoException);
  }

  /** Asked for with each line that is written. */
  function isTerminalHere(): boolean {
    knownTerminal ??= isTerminal(descriptor);
    return knownTerminal;
  }

  function opened(): NodeJS.WriteStream {
    stream ??= open().on("error", fail);
    return stream;
  }

  /** Returns what is left to be written. */
  function writeDirectly(bytes: Uint8Array): Uint8Array {
    room -= bytes.length;
    try {
      return bytes.subarray(process.getBuiltinModule("node:fs").writeSync(descriptor, bytes));
    } catch (error) {
      // The stream knows how to wait.
      if (errorCode(error) === "EAGAIN") return bytes;
      fail(error);
      return bytes.subarray(bytes.length);
    }
  }

  function writeToStream(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      opened().write(bytes, (error) => {
        // The stream's event comes later than this, when it may be too late to be heard.
        if (error) fail(error);
        resolve();
      });
    });
  }

  return {
    write(data) {
      if (hasFailed || isSilent()) return;
      const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
      const rest = stream === undefined && bytes.length <= room ? writeDirectly(bytes) : bytes;
      if (rest.length > 0) written = writeToStream(rest);
    },
    writeAlone(text) {
      written = Bun.write(Bun.file(descriptor), text).then(() => undefined, fail);
    },
    // An empty write is no way to flush: Bun says at once that it is done, whatever is still before it.
    flush: () => written,
    get isTerminal() {
      return isTerminalHere();
    },
    get hasColor() {
      return wantsColor(environment, isTerminalHere());
    },
    // A terminal that nobody has told its size says 0.
    get columns() {
      return isTerminalHere() ? opened().columns || 80 : 80;
    },
    get rows() {
      return isTerminalHere() ? opened().rows || 24 : 24;
    },
    onResize(listener) {
      const terminal = opened();
      terminal.on("resize", listener);
      return () => void terminal.off("resize", listener);
    },
  };
}

export function createInput(open: () => NodeJS.ReadStream): Input {
  return {
    get isTerminal() {
      return isTerminal(0);
    },
    get isPiped() {
      const stats = statsOf(0);
      return stats !== undefined && (stats.isFIFO() || stats.isFile() || stats.isSocket());
    },
    stream: open,
    setRawMode: (isRaw) => void open().setRawMode(isRaw),
  };
}

function isTerminal(descriptor: number): boolean {
  if (statsOf(descriptor)?.isCharacterDevice() !== true) return false;
  return process.getBuiltinModule("node:tty").isatty(descriptor);
}

function statsOf(descriptor: number) {
  try {
    return process.getBuiltinModule("node:fs").fstatSync(descriptor);
  } catch {
    return undefined;
  }
}
