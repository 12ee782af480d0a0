import { readdirSync, readlinkSync } from "node:fs";
import { BoughError, messageOf } from "../../errors.ts";
import type { TerminalSize } from "../../service/wire/instance.ts";
import { TerminalOutput } from "./terminal-output.ts";

/** A hidden terminal of this machine. When signalled, runc reads its size and sets the size of the sandbox's own terminal. */
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
  // Bun.Terminal does not tell its descriptor, and nothing else runs in this process in between.
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
