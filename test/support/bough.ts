/** Runs a command line in this process, as `src/main.ts` does in a separate one. */
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInputs } from "../../src/cli/process/inputs.ts";
import type { Runtime } from "../../src/cli/process/runtime.ts";
import { requestedFormat, runCommandLine } from "../../src/cli/program/run.ts";
import { type Clock, systemClock } from "../../src/clock.ts";
import type { Fetch } from "../../src/service/service.ts";
import { describeFailure } from "../../src/terminal/failure.ts";
import { keepTrialOf, passTrialTo } from "./runtime-trial.ts";

export interface Ended {
  exitCode: number;
  stdout: string;
  stderr: string;
}

export interface BoughOptions {
  workingDirectory: string;
  environment?: Record<string, string>;
  signal?: AbortSignal;
  clock?: Clock;
  fetch?: Fetch;
  platform?: NodeJS.Platform;
  /** Piped standard input; by default nothing is piped. */
  stdin?: string | Uint8Array | AsyncIterable<Uint8Array>;
  /** True if standard input is a terminal. */
  hasInputTerminal?: boolean;
  /** The columns of standard output, which is a terminal if this is given. */
  terminalColumns?: number;
  /** True if standard error is a terminal. */
  hasErrorTerminal?: boolean;
  /** Gets the handlers that Ctrl-C would call. */
  interrupts?: Runtime["interrupts"];
  /** Called with all text for standard error when it is written. */
  onStderr?: (text: string) => void;
  /** Called in place of the start in a user namespace, of an ordinary user. */
  onEnter?: () => never;
}

export async function runBough(words: readonly string[], options: BoughOptions): Promise<Ended> {
  const stdout: Uint8Array[] = [];
  let stderr = "";
  const text = () => Buffer.concat(stdout).toString();
  const stdin = {
    isTerminal: options.hasInputTerminal === true,
    isPiped: options.stdin !== undefined && options.hasInputTerminal !== true,
    stream: () => piped(options.stdin),
    setRawMode() {},
  };
  const runtime: Runtime = {
    environment: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      BOUGH_HOME: process.env.BOUGH_HOME,
      ...options.environment,
    },
    workingDirectory: options.workingDirectory,
    platform: options.platform ?? process.platform,
    userId: options.onEnter === undefined ? 0 : 1000,
    stdin,
    inputs: createInputs(stdin),
    stdout: {
      write: (data) => void stdout.push(typeof data === "string" ? Buffer.from(data) : data.slice()),
      writeAlone: (render) =>
        void stdout.push(Buffer.from(render(options.terminalColumns ?? Number.POSITIVE_INFINITY))),
      flush: async () => {},
      isTerminal: options.terminalColumns !== undefined,
      hasColor: false,
      columns: options.terminalColumns ?? 80,
      rows: 24,
      onResize: () => () => {},
    },
    stderr: {
      write: (data) => {
        const written = typeof data === "string" ? data : Buffer.from(data).toString();
        stderr += written;
        options.onStderr?.(written);
      },
      writeAlone() {
        throw new Error("help is not an error");
      },
      flush: async () => {},
      isTerminal: options.hasErrorTerminal === true,
      hasColor: false,
      columns: 80,
      rows: 24,
      onResize: () => () => {},
    },
    clock: options.clock ?? systemClock,
    signal: options.signal ?? new AbortController().signal,
    interrupts: options.interrupts ?? new Set(),
    terminations: new Set(),
    running: new Set(),
    views: new Set(),
    github: { access: new Map(), stores: new Map() },
    fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    runInBackground() {
      throw new Error("a test in this process cannot start one in the background");
    },
    withDefaultSignals: async (work) => await work(),
    async prepareReplacement() {
      if (options.onEnter !== undefined) return options.onEnter();
      throw new Error("a test's process is not replaced");
    },
  };
  const engine = join(runtime.environment.BOUGH_HOME ?? "", "engine");
  if (words.includes("--local")) passTrialTo(engine);
  let format = requestedFormat(words);
  try {
    const exitCode = await runCommandLine(words, runtime, (globals) => {
      format = globals.format;
    });
    return { exitCode, stdout: text(), stderr };
  } catch (error) {
    const failure = describeFailure(error, format);
    return { exitCode: failure.exitCode, stdout: text(), stderr: stderr + failure.text };
  } finally {
    if (words.includes("--local")) keepTrialOf(engine);
  }
}

async function* piped(source: BoughOptions["stdin"]): AsyncGenerator<Uint8Array> {
  if (source === undefined) return;
  if (typeof source === "string") yield Buffer.from(source);
  else if (source instanceof Uint8Array) yield source;
  else yield* source;
}

/** A new directory, removed with the test's home. */
export function temporaryDirectory(prefix = "bough-"): string {
  const parent = process.env.HOME ?? tmpdir();
  // The home is removed after each test file. The next file may need a directory before its first test.
  mkdirSync(parent, { recursive: true });
  return mkdtempSync(join(parent, prefix));
}

/** The parent of directories that must be on a disk, because other temporary ones may be in memory. */
export function diskForTests(): string {
  return process.env.TEST_DISK || tmpdir();
}
