import type { GlobalOptions } from "./cli/command-line/globals.ts";
import { namedDescriptors } from "./cli/process/descriptors.ts";
import { withVariables } from "./cli/process/environment.ts";
import { createInputs } from "./cli/process/inputs.ts";
import { createInterruptKey, endingSignals } from "./cli/process/interrupts.ts";
import type { BackgroundProcess, Replacement, Runtime } from "./cli/process/runtime.ts";
import { createInput, createOutput } from "./cli/process/standard-streams.ts";
import { requestedFormat, runCommandLine } from "./cli/program/run.ts";
import { systemClock } from "./clock.ts";
import { BoughError } from "./errors.ts";
import { lines, wording } from "./messages/wording.ts";
import { ownProcessWord, ownProgram } from "./programs/own-process.ts";
import { reasonOf } from "./system-error.ts";
import { describeFailure, failureOf } from "./terminal/failure.ts";
import { formatLogLines } from "./terminal/terminal-text.ts";

/** The function passed to `start` by main.ts: nothing else ends the process. */
let exit: (exitCode: number) => never;

const interruption = new AbortController();
/** True after the reader closed the pipe, as in `bough images | head -1`. Running work is stopped, and nothing more is shown. */
let readerHasLeft = false;

/** timeout(1) and others send a signal both to the process and to its group. The second one within this time does not count. */
const echoMilliseconds = 200;
let interruptedAt = 0;

/** Cancels the work at the first signal. Ends the process at the second one, and names what may still run. */
function interrupt(): void {
  const now = Date.now();
  if (interruption.signal.aborted && now - interruptedAt > echoMilliseconds)
    exitAtOnce(new BoughError("ended without waiting", { kind: "interrupted" }));
  interruptedAt ||= now;
  interruption.abort(new BoughError("interrupted", { kind: "interrupted" }));
}

/** Ends the process without waiting, and names what may still run. */
function exitAtOnce(failure: BoughError): never {
  const left = [...runtime.running].join(" and ");
  const reported = left === "" ? failure : withRunningWork(failure, left);
  // The terminal has shown ^C at the beginning of the line.
  const beginLine = runtime.stderr.isTerminal ? "\r\u001b[K" : "";
  const { text, exitCode } = describeFailure(reported, requestedFormat(process.argv.slice(2)));
  try {
    for (const view of runtime.views) view.close();
    process.getBuiltinModule("node:fs").writeSync(2, beginLine + formatLogLines(text, runtime.stderr));
  } catch {
    // The error can't be shown anywhere.
  }
  return exit(exitCode);
}

function withRunningWork({ wording: message, kind, hint }: BoughError, left: string): BoughError {
  const remedy = "`bough ps` shows what runs, `bough kill OPERATION` ends it.";
  return new BoughError(wording`${message}; ${left} may still run`, { kind, hint: lines([hint, remedy]) });
}

/** The error of writing results. Running work is stopped after it, since nobody gets its result. */
let writeFailure: BoughError | undefined;

function stopWriting(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") readerHasLeft = true;
  // EIO means that the terminal is gone, for which SIGHUP is sent.
  else if (error.code !== "EIO")
    writeFailure = new BoughError(`cannot write to standard output: ${reasonOf(error)}`);
  const reason = new BoughError("the reader has closed the output", { kind: "interrupted" });
  interruption.abort(writeFailure ?? reason);
}

/** Stops the process at Ctrl-Z, after erasing the live view for the shell. */
function suspend(): void {
  for (const view of runtime.views) view.suspend?.();
  // Without the handler, the signal stops the process.
  process.off("SIGTSTP", suspend);
  process.kill(process.pid, "SIGTSTP");
}

function resume(): void {
  process.off("SIGTSTP", suspend);
  process.on("SIGTSTP", suspend);
  for (const view of runtime.views) view.resume?.();
  // A stopped process gets no signal for a changed terminal size.
  process.kill(process.pid, "SIGWINCH");
}

/** True under nohup(1), so that the work goes on without its terminal. Also true on a system without /proc. */
function ignoresHangup(): boolean {
  try {
    const status = process.getBuiltinModule("node:fs").readFileSync("/proc/self/status", "utf8");
    const [, mask = ""] = /^SigIgn:\s*([0-9a-f]+)$/m.exec(status) ?? [];
    return mask === "" || (BigInt(`0x${mask}`) & 1n) === 1n;
  } catch {
    return true;
  }
}

/** Returns the command that runs bough again as it was called: under docker's name it is another program. */
function calledProgram(): string[] {
  const called = /docker-buildx(\.exe)?$/.test(process.argv0) ? Bun.which(process.argv0) : null;
  return called === null ? ownProgram() : [called];
}

function runInBackground(
  environment: Readonly<Record<string, string>>,
  rewrite: (words: readonly string[]) => readonly string[],
): BackgroundProcess {
  const words = rewrite(process.argv.slice(2));
  const named = namedDescriptors(words);
  const others: (number | null)[] = Array(Math.max(2, ...named) - 2).fill(null);
  for (const descriptor of named) others[descriptor - 3] = descriptor;
  return Bun.spawn([...ownProgram(), ...words], {
    env: { ...process.env, ...environment },
    stdio: [runtime.stdin.isPiped ? "inherit" : "ignore", "pipe", "pipe", ...others],
    detached: true,
  });
}

/** The import is dynamic, since node:fs alone takes a quarter of the time of printing a help text. */
async function prepareReplacement(): Promise<Replacement> {
  const { inheritedDescriptors, replaceProcess } = await import("./programs/replace-process.ts");
  const descriptors = inheritedDescriptors();
  return (command, environment) =>
    replaceProcess(
      [...command, ...calledProgram(), ...process.argv.slice(2)],
      { ...process.env, ...environment },
      descriptors,
    );
}

const stdin = createInput(() => process.stdin);

const runtime: Runtime = {
  environment: withVariables(process.env),
  workingDirectory: process.cwd(),
  platform: process.platform,
  userId: process.getuid?.(),
  stdin,
  inputs: createInputs(stdin),
  stdout: createOutput({
    descriptor: 1,
    open: () => process.stdout,
    environment: process.env,
    onError: stopWriting,
    page: async (text) => (await import("./cli/process/pager.ts")).showInPager(text, process.env),
  }),
  stderr: createOutput({
    descriptor: 2,
    open: () => process.stderr,
    environment: process.env,
    // There is no other stream for the error.
    onError() {},
    isSilent: () => readerHasLeft,
  }),
  clock: systemClock,
  signal: interruption.signal,
  interrupts: new Set(),
  terminations: new Set(),
  running: new Set(),
  views: new Set(),
  github: { access: new Map(), stores: new Map() },
  fetch: (input, init) => fetch(input, init),
  runInBackground,
  prepareReplacement,
  withDefaultSignals,
};

/**
 * The time at which the JIT policy of scripts/build ends. A longer process runs much of its code again. Before that, compiling to
 * machine code takes processor time from a build's commands: for 20 short ones, a tenth of their total.
 */
const startMilliseconds = 2000;

/** Runs this process's command line, and then calls `exitProcess`. */
export function start(exitProcess: (exitCode: number) => never, { isPlugin }: { isPlugin: boolean }): void {
  exit = exitProcess;
  setTimeout(() => Bun.unsafe.setJITPolicy(1), startMilliseconds).unref();

  // Without these handlers, Bun would show a piece of source code.
  for (const event of ["uncaughtException", "unhandledRejection"])
    process.on(event, (error: unknown) => exitAtOnce(failureOf(error)));
  const [word, ...words] = process.argv.slice(2);
  void (word === ownProcessWord ? runPart(words) : main(isPlugin));
}

/** Runs a part of bough that needs a process of its own. */
async function runPart(words: readonly string[]): Promise<void> {
  const { runOwnProcess } = await import("./engine/own-processes.ts");
  exit(await runOwnProcess(words));
}

/** The handlers of signals that end the process. */
const endingHandlers = new Map<NodeJS.Signals, () => void>();

/** Installs the signal handlers. Called once there is work to cancel, so not for help. */
function handleSignals(): void {
  const own = new Map([
    ["SIGINT", createInterruptKey(runtime.interrupts, interrupt)],
    ["SIGTERM", createInterruptKey(runtime.terminations, interrupt)],
  ]);
  for (const signal of endingSignals(process.platform, ignoresHangup()))
    endingHandlers.set(signal, own.get(signal) ?? interrupt);
  for (const [signal, handler] of endingHandlers) process.on(signal, handler);
  if (process.platform !== "win32") {
    process.on("SIGTSTP", suspend);
    process.on("SIGCONT", resume);
  }
}

async function withDefaultSignals<Result>(work: () => Result | Promise<Result>): Promise<Result> {
  for (const [signal, handler] of endingHandlers) process.off(signal, handler);
  try {
    return await work();
  } finally {
    for (const [signal, handler] of endingHandlers) process.on(signal, handler);
  }
}

/** A function, since the compiled program's bytecode cache does not support top-level await. */
async function main(isPlugin: boolean): Promise<void> {
  let globals: GlobalOptions | undefined;
  let exitCode = 0;
  try {
    const words = process.argv.slice(2);
    const plugin = isPlugin ? await import("./cli/plugin/docker-buildx.ts") : undefined;
    const onGlobals = (known: GlobalOptions) => {
      globals = known;
      handleSignals();
      plugin?.watchDocker(runtime, interrupt);
    };
    exitCode =
      plugin === undefined
        ? await runCommandLine(words, runtime, onGlobals)
        : await plugin.runPlugin(words, runtime, onGlobals);
    await runtime.stdout.flush();
    if (writeFailure !== undefined) throw writeFailure;
  } catch (error) {
    const failure = isPlugin
      ? (await import("./cli/plugin/docker-buildx.ts")).describePluginFailure(error)
      : describeFailure(error, globals?.format ?? requestedFormat(process.argv.slice(2)));
    runtime.stderr.write(formatLogLines(failure.text, runtime.stderr));
    exitCode = failure.exitCode;
  }
  // Exiting drops data that a pipe has not accepted yet.
  await Promise.all([runtime.stdout.flush(), runtime.stderr.flush()]);
  exit(readerHasLeft ? 0 : exitCode);
}
