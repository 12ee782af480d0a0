import type { Clock } from "../../clock.ts";
import type { Fetch } from "../../service/service.ts";
import type { Interrupt } from "./interrupts.ts";

/** Everything that a command gets from outside; made once, in `start.ts`. */
export interface Runtime {
  environment: Readonly<Record<string, string | undefined>>;
  workingDirectory: string;
  /** `linux`, `darwin`, `win32`: the embedded engine needs the first. */
  platform: NodeJS.Platform;
  /** 0 for root; `undefined` where the system has no such thing. */
  userId: number | undefined;
  stdin: Input;
  stdout: Output;
  stderr: Output;
  clock: Clock;
  /** Aborted by Ctrl-C, SIGTERM and SIGHUP. */
  signal: AbortSignal;
  /** What Ctrl-C ends instead of aborting the signal, the latest of them. */
  interrupts: Set<Interrupt>;
  /** What a service does for this process just now, in words: said where the process is left at once. */
  running: Set<string>;
  views: Set<View>;
  fetch: Fetch;
  /** Tells this program from all others; `undefined` where it is run from its source, which may change under it. */
  identifyProgram(): string | undefined;
  /**
   * Runs this command line again beside this process, which need not outlive it: in a session of its own, so that neither
   * Ctrl-C nor the end of the terminal reaches it. Standard input is passed on where something is piped in. `rewrite` makes its words of this one's.
   */
  runInBackground(
    environment: Readonly<Record<string, string>>,
    rewrite: (words: readonly string[]) => readonly string[],
  ): BackgroundProcess;
  /** Runs this command line again as the last words of `command`, in this process: it does not return. */
  replaceProcess(command: readonly string[], environment: Readonly<Record<string, string>>): never;
}

/** What is drawn on the terminal, or has it to itself. */
export interface View {
  /** Called also where the process is left at once: the terminal is as it was before. */
  close(): void;
  /** The process is about to be stopped, as by Ctrl-Z: somebody else gets the terminal. Not called where nobody can tell, as by SIGSTOP. */
  suspend?(): void;
  /** The process goes on. */
  resume?(): void;
}

export interface BackgroundProcess {
  stdout: ReadableStream<Uint8Array>;
  stderr: ReadableStream<Uint8Array>;
  exited: Promise<number>;
}

export interface Input {
  isTerminal: boolean;
  /** A pipe, a file or a socket: something that was meant to be read. Neither a terminal nor `/dev/null`. */
  isPiped: boolean;
  /** What comes in, to its end. */
  stream(): AsyncIterable<Uint8Array>;
  /** Puts a terminal into raw mode: no echo, no line editing, every key as it is pressed. */
  setRawMode(isRaw: boolean): void;
}

export interface Output {
  write(data: string | Uint8Array): void;
  /** Writes what is all that is written, such as help: that takes a fraction of the time. */
  writeAlone(text: string): void;
  /** Resolves when all that was written has been taken: what is piped on is not to pile up in memory. */
  flush(): Promise<void>;
  isTerminal: boolean;
  /** Colours are wanted: `NO_COLOR`, `FORCE_COLOR` and `CI` have been asked. */
  hasColor: boolean;
  /** The terminal's width as it is now; 80 elsewhere, and where the terminal does not know. */
  readonly columns: number;
  /** The terminal's height as it is now; 24 elsewhere, and where the terminal does not know. */
  readonly rows: number;
  /** Calls the listener whenever the terminal has got another size. Returns how to stop that. */
  onResize(listener: () => void): () => void;
}
