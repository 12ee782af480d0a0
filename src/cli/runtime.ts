import type { Clock } from "../clock.ts";
import type { Fetch } from "../service/service.ts";

/** Everything that a command gets from outside; made once, in `main.ts`. */
export interface Runtime {
  environment: Readonly<Record<string, string | undefined>>;
  workingDirectory: string;
  /** `linux`, `darwin`, `win32`: the embedded engine needs the first. */
  platform: NodeJS.Platform;
  stdout: Output;
  stderr: Output;
  clock: Clock;
  /** Aborted by Ctrl-C and SIGTERM. */
  signal: AbortSignal;
  fetch: Fetch;
}

export interface Output {
  write(text: string): void;
  isTerminal: boolean;
  /** Of a terminal; 80 elsewhere. */
  columns: number;
}
