import type { GlobalOptions } from "./cli/command-line/globals.ts";
import { requestedFormat, runCommandLine } from "./cli/command-line/run.ts";
import { createInterruptKey } from "./cli/process/interrupts.ts";
import type { BackgroundProcess, Runtime } from "./cli/process/runtime.ts";
import { endingSignals } from "./cli/process/signals.ts";
import { createInput, createOutput } from "./cli/process/standard-streams.ts";
import { systemClock } from "./clock.ts";
import { BoughError } from "./errors.ts";
import { reasonOf } from "./system-error.ts";
import { describeFailure, failureOf } from "./terminal/failure.ts";
import { formatLogLines } from "./terminal/terminal-text.ts";
import { version } from "./version.ts";

/** What main.ts has passed to `start`: nothing else ends the process. */
let exit: (exitCode: number) => never;

const interruption = new AbortController();
/** `bough images | head -1`: whoever reads has read enough. What still runs is stopped, and nothing more is said. */
let readerHasLeft = false;

/** timeout(1) and others send a signal to the process and to its group: it arrives twice, and is meant once. */
const echoMilliseconds = 200;
let interruptedAt = 0;

/** The first signal ends the work in good order; a second one ends the process, and says what it leaves behind. */
function interrupt(): void {
  const now = Date.now();
  if (interruption.signal.aborted && now - interruptedAt > echoMilliseconds)
    leaveAtOnce(new BoughError("left at once", { kind: "interrupted" }));
  interruptedAt ||= now;
  interruption.abort(new BoughError("interrupted", { kind: "interrupted" }));
}

/** Nothing is waited for: what may still run is named. */
function leaveAtOnce(failure: BoughError): never {
  const left = [...runtime.running].join(" and ");
  const told = left === "" ? failure : withRemains(failure, left);
  // The terminal has written ^C where the line begins.
  const beginLine = runtime.stderr.isTerminal ? "\r\u001b[K" : "";
  const { text, exitCode } = describeFailure(told, requestedFormat(process.argv.slice(2)));
  try {
    for (const view of runtime.views) view.close();
    process.getBuiltinModule("node:fs").writeSync(2, beginLine + formatLogLines(text, runtime.stderr));
  } catch {
    // There is nowhere to say it.
  }
  return exit(exitCode);
}

function withRemains({ message, kind, hint }: BoughError, left: string): BoughError {
  const remedy = "`bough ps` shows what runs, `bough kill OPERATION` ends it.";
  return new BoughError(`${message}; ${left} may still run`, {
    kind,
    hint: hint === undefined ? remedy : `${hint}\n${remedy}`,
  });
}

/** Results that could not be written: what still runs is of no use. */
let writeFailure: BoughError | undefined;

function stopWriting(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") readerHasLeft = true;
  // SIGHUP tells of a terminal that is gone.
  else if (error.code !== "EIO")
    writeFailure = new BoughError(`cannot write to standard output: ${reasonOf(error)}`);
  const reason = new BoughError("nobody reads the output any more", { kind: "interrupted" });
  interruption.abort(writeFailure ?? reason);
}

/** Ctrl-Z: who has stopped the process gets the terminal in order. */
function suspend(): void {
  for (const view of runtime.views) view.suspend?.();
  // The signal does then what it would have done.
  process.off("SIGTSTP", suspend);
  process.kill(process.pid, "SIGTSTP");
}

function resume(): void {
  process.off("SIGTSTP", suspend);
  process.on("SIGTSTP", suspend);
  for (const view of runtime.views) view.resume?.();
  // Who is stopped isn't told of the terminal's new size.
  process.kill(process.pid, "SIGWINCH");
}

/** True under nohup(1): the end of the terminal is not to end the work then. False where the system doesn't say. */
function ignoresHangup(): boolean {
  try {
    const status = process.getBuiltinModule("node:fs").readFileSync("/proc/self/status", "utf8");
    const [, mask = ""] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(status) ?? [];
    return mask === "" || (BigInt(`0x${mask}`) & 1n) === 1n;
  } catch {
    return true;
  }
}

/** A compiled program is its own executable; otherwise Bun runs this file. */
function ownCommandLine(words: readonly string[] = process.argv.slice(2)): string[] {
  const self = Bun.main.startsWith("/$bunfs/") ? [process.execPath] : [process.execPath, Bun.main];
  return [...self, ...words];
}

function identifyProgram(): string | undefined {
  if (!Bun.main.startsWith("/$bunfs/")) return undefined;
  const { dev, ino, size, mtimeMs, ctimeMs } = process.getBuiltinModule("node:fs").statSync(process.execPath);
  return [version, dev, ino, size, mtimeMs, ctimeMs].join(" ");
}

function runInBackground(
  environment: Readonly<Record<string, string>>,
  rewrite: (words: readonly string[]) => readonly string[],
): BackgroundProcess {
  return Bun.spawn(ownCommandLine(rewrite(process.argv.slice(2))), {
    env: { ...process.env, ...environment },
    stdin: runtime.stdin.isPiped ? "inherit" : "ignore",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
}

function replaceProcess(command: readonly string[], environment: Readonly<Record<string, string>>): never {
  const program = Bun.which(command[0] ?? "") ?? command[0] ?? "";
  if (process.execve === undefined) throw new Error("this system can't replace a process");
  return process.execve(program, [...command, ...ownCommandLine()], {
    ...process.env,
    ...environment,
  });
}

const runtime: Runtime = {
  environment: process.env,
  workingDirectory: process.cwd(),
  platform: process.platform,
  userId: process.getuid?.(),
  stdin: createInput(() => process.stdin),
  stdout: createOutput({
    descriptor: 1,
    open: () => process.stdout,
    environment: process.env,
    onError: stopWriting,
  }),
  stderr: createOutput({
    descriptor: 2,
    open: () => process.stderr,
    environment: process.env,
    // There is nowhere left to say it.
    onError() {},
    isSilent: () => readerHasLeft,
  }),
  clock: systemClock,
  signal: interruption.signal,
  interrupts: new Set(),
  running: new Set(),
  views: new Set(),
  fetch: (input, init) => fetch(input, init),
  identifyProgram,
  runInBackground,
  replaceProcess,
};

/**
 * When the policy of scripts/build ends. What goes on for longer runs much of its code again; before that, machine code took the
 * processors from the commands of a build: a tenth of all that 20 short ones need.
 */
const startMilliseconds = 2000;

/** Runs the command line of this process, and ends it by `exitProcess`. */
export function start(exitProcess: (exitCode: number) => never): void {
  exit = exitProcess;
  setTimeout(() => Bun.unsafe.setJITPolicy(1), startMilliseconds).unref();

  // Bun would show its own source instead.
  for (const event of ["uncaughtException", "unhandledRejection"])
    process.on(event, (error: unknown) => leaveAtOnce(failureOf(error)));
  void main();
}

/** Called once there is something to end: help is over sooner. */
function hearSignals(): void {
  const interruptByKey = createInterruptKey(runtime.interrupts, interrupt);
  for (const signal of endingSignals(process.platform, ignoresHangup()))
    process.on(signal, signal === "SIGINT" ? interruptByKey : interrupt);
  if (process.platform !== "win32") {
    process.on("SIGTSTP", suspend);
    process.on("SIGCONT", resume);
  }
}

/** No top-level await: the compiled program's bytecode cache has no room for it. */
async function main(): Promise<void> {
  let globals: GlobalOptions | undefined;
  let exitCode = 0;
  try {
    exitCode = await runCommandLine(process.argv.slice(2), runtime, (known) => {
      globals = known;
      hearSignals();
    });
    await runtime.stdout.flush();
    if (writeFailure !== undefined) throw writeFailure;
  } catch (error) {
    const failure = describeFailure(error, globals?.format ?? requestedFormat(process.argv.slice(2)));
    runtime.stderr.write(formatLogLines(failure.text, runtime.stderr));
    exitCode = failure.exitCode;
  }
  // Exiting drops what a pipe has not taken yet.
  await Promise.all([runtime.stdout.flush(), runtime.stderr.flush()]);
  exit(readerHasLeft ? 0 : exitCode);
}
