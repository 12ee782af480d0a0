import type { TerminalSize } from "../../service/wire/instance.ts";
import { openPseudoTerminal, type PseudoTerminal } from "./pseudo-terminal.ts";
import { TerminalOutput } from "./terminal-output.ts";

/** A command's terminal, from before its start to its end. */
export interface CommandTerminal extends PseudoTerminal {
  output: TerminalOutput;
}

export function openCommandTerminal(size: TerminalSize): CommandTerminal {
  return { ...openPseudoTerminal(size), output: new TerminalOutput() };
}
