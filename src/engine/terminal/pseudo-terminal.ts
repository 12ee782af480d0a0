import { readdirSync, readlinkSync } from "node:fs";
import { BoughError, messageOf } from "../../errors.ts";
import type { TerminalSize } from "../../service/wire/instance.ts";
import { RequestError } from "../http/responses.ts";

/** A terminal of this machine that only passes on its size: when signalled, runc sets the sandbox's own terminal to it. */
interface PseudoTerminal {
  /** The end that programs use. */
  descriptor: number;
  resize(size: TerminalSize): void;
  close(): void;
}

function openPseudoTerminal({ columns, rows }: TerminalSize): PseudoTerminal {
  const before = openTerminals();
  const terminal = open(columns, rows);
  terminal.unref();
  // Bun.Terminal does not expose its descriptor. Nothing else can have opened one, since all this happens in one turn.
  const descriptor = openTerminals().find((other) => !before.includes(other));
  if (descriptor === undefined) {
    terminal.close();
    throw new BoughError("the command's terminal can't be found below /proc/self/fd");
  }
  return {
    descriptor,
    resize: (size) => terminal.resize(size.columns, size.rows),
    close: () => terminal.close(),
  };
}

function open(cols: number, rows: number): Bun.Terminal {
  try {
    return new Bun.Terminal({ cols, rows });
  } catch (error) {
    throw new BoughError(`cannot open a pseudo-terminal for the command: ${messageOf(error)}`, {
      hint: "Check that /dev/ptmx exists and that devpts is mounted at /dev/pts.",
      cause: error,
    });
  }
}

function openTerminals(): number[] {
  return readdirSync("/proc/self/fd")
    .filter((descriptor) => /^\/dev\/pts\/\d+$/.test(targetOf(descriptor)))
    .map(Number);
}

/** The directory's own descriptor is closed by the time its link is read. */
function targetOf(descriptor: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`);
  } catch {
    return "";
  }
}

/** A command's terminal, from before its start to its end. */
export interface CommandTerminal extends PseudoTerminal {
  output: TerminalOutput;
}

export function openCommandTerminal(size: TerminalSize): CommandTerminal {
  return { ...openPseudoTerminal(size), output: new TerminalOutput() };
}

/**
 * A command's terminal output on its way to the one client that sees it. It is not stored, and is read only as fast as the client
 * takes it.
 */
class TerminalOutput {
  #isAttached = false;
  #hasEnded = false;
  /** Output that the client has not taken yet. */
  #waiting: { chunk: Uint8Array; taken: () => void } | undefined;
  /** Signals new output, or its end. */
  #notify: () => void = () => {};

  /** `onLeave` is called if the client disconnects before the end. */
  attach(onLeave: () => void): ReadableStream<Uint8Array> {
    if (this.#isAttached) throw new RequestError(409, "another client is attached to this terminal");
    this.#isAttached = true;
    let hasBegun = false;
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      hasBegun = true;
      const chunk = await this.#take();
      if (chunk === undefined) controller.close();
      else controller.enqueue(chunk);
    };
    const cancel = () => {
      // The response to a `HEAD` request is cancelled before anything is read.
      this.#isAttached = hasBegun;
      if (!hasBegun) return;
      this.abandon();
      onLeave();
    };
    return new ReadableStream<Uint8Array>({ pull, cancel }, { highWaterMark: 0 });
  }

  /** Resolves when the client has taken the chunk, or never will. One write at a time. */
  write(chunk: Uint8Array): Promise<void> {
    if (this.#hasEnded || chunk.length === 0) return Promise.resolve();
    return new Promise((taken) => {
      this.#waiting = { chunk: chunk.slice(), taken };
      this.#notify();
    });
  }

  /** Ends the output, and discards what the client has not taken. */
  abandon(): void {
    this.#hasEnded = true;
    this.#waiting?.taken();
    this.#waiting = undefined;
    this.#notify();
  }

  async #take(): Promise<Uint8Array | undefined> {
    while (this.#waiting === undefined && !this.#hasEnded)
      await new Promise<void>((resolve) => {
        this.#notify = resolve;
      });
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.taken();
    return waiting?.chunk;
  }
}
