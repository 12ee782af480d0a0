/**
 * Standard input and output. Streams and node:fs are loaded only when needed, because opening a stream takes most of a short
 * command's time.
 */
import { errorCode } from "../../system-error.ts";
import { wantsColor } from "../../terminal/color.ts";
import type { Input, Output } from "./runtime.ts";

interface OutputOptions {
  descriptor: number;
  open: () => NodeJS.WriteStream;
  environment: Readonly<Record<string, string | undefined>>;
  /** Called when writing fails: the reader has gone, or the disk is full. Later writes are dropped. */
  onError: (error: NodeJS.ErrnoException) => void;
  /** Shows text that is longer than the terminal; resolves with false if it has not been shown. */
  page?: (text: string) => Promise<boolean>;
  /** True if writes are dropped from now on. */
  isSilent?: () => boolean;
}

/** The number of bytes that a pipe holds while nobody reads from it. */
const directBytes = 64 * 1024;

export function createOutput(options: OutputOptions): Output {
  const { descriptor, open, environment, onError, isSilent = () => false, page } = options;
  let stream: NodeJS.WriteStream | undefined;
  let knownTerminal: boolean | undefined;
  let room = directBytes;
  let hasFailed = false;
  /** The newest write through the stream. When it ends, all earlier writes have ended. */
  let written: Promise<void> = Promise.resolve();

  function fail(error: unknown): void {
    if (hasFailed) return;
    hasFailed = true;
    onError(error as NodeJS.ErrnoException);
  }

  /** True if the descriptor is a terminal. The answer is cached, since each written line needs it. */
  function isTerminalHere(): boolean {
    knownTerminal ??= isTerminal(descriptor);
    return knownTerminal;
  }

  /** Returns the terminal's width. Asks Bun first: loading node:fs would take a quarter of the time of `help`. */
  async function findColumns(): Promise<number> {
    const stats = await Bun.file(descriptor)
      .stat()
      .catch(() => undefined);
    if (stats?.isCharacterDevice() === false || !isTerminalHere()) return Number.POSITIVE_INFINITY;
    return opened().columns || 80;
  }

  function opened(): NodeJS.WriteStream {
    stream ??= open().on("error", fail);
    return stream;
  }

  /** Writes to the descriptor. Returns the bytes that could not be written. */
  function writeDirectly(bytes: Uint8Array): Uint8Array {
    room -= bytes.length;
    try {
      return bytes.subarray(process.getBuiltinModule("node:fs").writeSync(descriptor, bytes));
    } catch (error) {
      // The stream waits until the descriptor is writable.
      if (errorCode(error) === "EAGAIN") return bytes;
      fail(error);
      return bytes.subarray(bytes.length);
    }
  }

  function writeToStream(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      opened().write(bytes, (error) => {
        // The stream's `error` event comes later than this, maybe too late to be handled.
        if (error) fail(error);
        resolve();
      });
    });
  }

  async function writeOrPage(render: (columns: number) => string): Promise<void> {
    const columns = await findColumns();
    const text = render(columns);
    const isPaged =
      page !== undefined &&
      columns !== Number.POSITIVE_INFINITY &&
      // The shell's prompt takes one of the rows.
      text.split("\n").length > (opened().rows || 24) &&
      (await page(text));
    if (!isPaged) await Bun.write(Bun.file(descriptor), text);
  }

  return {
    write(data) {
      if (hasFailed || isSilent()) return;
      const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
      const rest = stream === undefined && bytes.length <= room ? writeDirectly(bytes) : bytes;
      if (rest.length > 0) written = writeToStream(rest);
    },
    writeAlone(render) {
      written = writeOrPage(render).catch(fail);
    },
    // An empty write can't be used to flush: Bun calls back immediately, even while earlier writes are pending.
    flush: () => written,
    get isTerminal() {
      return isTerminalHere();
    },
    get hasColor() {
      return wantsColor(environment, isTerminalHere());
    },
    // A terminal of unknown size reports 0.
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
