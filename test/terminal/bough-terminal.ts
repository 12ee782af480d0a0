import { join } from "node:path";
import { compileBough } from "../support/compiled.ts";
import { openTerminal, type Terminal } from "../support/terminal.ts";

/** Compiled while the test file is loaded, which no timeout of a test limits. */
const program = compileBough();

interface BoughTerminalOptions {
  /** The user's home, in which the shell starts; bough's state is in it. */
  home: string;
  columns?: number;
  rows?: number;
  /** Further variables. */
  environment?: Record<string, string>;
  shell?: readonly string[];
}

/** Opens a terminal whose shell finds the compiled bough. */
export function openBoughTerminal(options: BoughTerminalOptions): Promise<Terminal> {
  const { home, columns = 80, rows = 24, environment, ...others } = options;
  return openTerminal({
    ...{ columns, rows, workingDirectory: home, programs: { bough: [program] }, ...others },
    environment: { HOME: home, BOUGH_HOME: join(home, "state"), ...environment },
  });
}
