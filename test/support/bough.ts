/** Runs a command line in this process, as `src/main.ts` would in one of its own. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommandLine } from "../../src/cli/index.ts";
import type { Runtime } from "../../src/cli/runtime.ts";
import { systemClock } from "../../src/clock.ts";
import { describeFailure } from "../../src/output/failure.ts";

export interface Ended {
  exitCode: number;
  stdout: string;
  stderr: string;
}

export interface BoughOptions {
  workingDirectory: string;
  environment?: Record<string, string>;
  signal?: AbortSignal;
  platform?: NodeJS.Platform;
  /** Hears of everything that goes to standard error, as it does. */
  onStderr?: (text: string) => void;
}

export async function runBough(words: readonly string[], options: BoughOptions): Promise<Ended> {
  let stdout = "";
  let stderr = "";
  const runtime: Runtime = {
    environment: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      BOUGH_HOME: process.env.BOUGH_HOME,
      ...options.environment,
    },
    workingDirectory: options.workingDirectory,
    platform: options.platform ?? process.platform,
    stdout: {
      write: (text) => {
        stdout += text;
      },
      isTerminal: false,
      columns: 80,
    },
    stderr: {
      write: (text) => {
        stderr += text;
        options.onStderr?.(text);
      },
      isTerminal: false,
      columns: 80,
    },
    clock: systemClock,
    signal: options.signal ?? new AbortController().signal,
    fetch: (input, init) => fetch(input, init),
  };
  let format: "table" | "json" = "table";
  try {
    await runCommandLine(words, runtime, (globals) => {
      format = globals.format;
    });
    return { exitCode: 0, stdout, stderr };
  } catch (error) {
    const failure = describeFailure(error, format);
    return { exitCode: failure.exitCode, stdout, stderr: stderr + failure.text };
  }
}

/** A new directory, removed with the test's home. */
export function temporaryDirectory(prefix = "bough-"): string {
  return mkdtempSync(join(process.env.HOME ?? tmpdir(), prefix));
}
