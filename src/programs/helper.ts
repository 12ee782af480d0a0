/** The only module that starts programs. Each gets its own session, so that all of its processes can be killed. */
import { basename } from "node:path";
import type { Subprocess } from "bun";
import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import type { Message } from "../messages/wording.ts";
import { errorCode } from "../system-error.ts";
import { startOnPipes } from "./pipes.ts";

/** A running program. */
export type RunningProgram = Pick<
  Subprocess,
  "pid" | "exited" | "exitCode" | "signalCode" | "resourceUsage" | "ref" | "unref"
>;

/** A running program with its standard streams. */
export interface Helper extends RunningProgram {
  readonly stdin: InputSink;
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  /** Closes streams that were not read or ended, or only begun; missing if they close without it. */
  discard?(): void;
}

/** A program's standard input. */
export interface InputSink {
  write(data: string | Uint8Array): number | Promise<number>;
  flush(): number | Promise<number>;
  end(): unknown;
}

export interface SpawnSettings {
  /** All environment variables of the program; see `helperEnvironment`. */
  environment: Readonly<Record<string, string>>;
  workingDirectory?: string;
  /** Open files that it inherits as descriptors 3 and up. */
  descriptors?: readonly (number | undefined)[];
}

export interface Deadline {
  clock: Clock;
  /** Seconds until the helper and all that it started are killed. */
  seconds: number;
  /** Ends the helper earlier; its abort reason is thrown. */
  signal?: AbortSignal;
  /** The end of the sentence about a helper that takes longer; by default "did not end". */
  failure?: string;
  /** Advice on a helper that takes longer; by default the command line to try by hand. */
  hint?: Message;
}

interface HelperResult {
  /** 128 plus the signal's number if a signal has ended it, as in shells. */
  status: number;
  stdout: string;
  stderr: string;
}

/**
 * Starts a program in its own session: the terminal's Ctrl-C only reaches bough, and `endHelper` reaches everything that the
 * program started. The caller waits for it with a deadline, or as long as the operation's timeout allows.
 */
export function startHelper(
  command: readonly string[],
  place: SpawnSettings,
): Subprocess<"pipe", "pipe", "pipe"> {
  return Bun.spawn([...command], {
    ...spawnOptions(place),
    stdio: ["pipe", "pipe", "pipe", ...furtherDescriptors(place)],
  });
}

/** Starts a program like `startHelper`, on pipes that the program's children may open by name, such as `/dev/stdout`. */
export function startPipedHelper(command: readonly string[], place: SpawnSettings): Helper {
  return startOnPipes((pipes) =>
    Bun.spawn([...command], {
      ...spawnOptions(place),
      stdio: [...pipes, ...furtherDescriptors(place)],
    }),
  );
}

function spawnOptions(place: SpawnSettings) {
  return {
    ...(place.workingDirectory === undefined ? {} : { cwd: place.workingDirectory }),
    env: { ...place.environment },
    // Windows has no sessions, and would give each a window instead.
    ...(isWindows ? { windowsHide: true } : { detached: true }),
  };
}

const isWindows = process.platform === "win32";

function furtherDescriptors({ descriptors = [] }: SpawnSettings): (number | null)[] {
  const given = descriptors.slice(0, descriptors.findLastIndex((descriptor) => descriptor !== undefined) + 1);
  return given.map((descriptor) => descriptor ?? null);
}

/** Writes a line that a program waits for. If the program can't read it, it has ended or will, and its end has the reason. */
export async function sendLine({ stdin }: Pick<Helper, "stdin">, line = ""): Promise<void> {
  try {
    await Promise.all([stdin.write(`${line}\n`), stdin.flush()]);
  } catch {
    // The other end of the pipe is closed.
  }
}

/** Writes all of a program's input. A program may end without reading it: its status tells how that went. */
async function writeInput({ stdin }: Pick<Helper, "stdin">, input: string): Promise<void> {
  try {
    if (input !== "") await stdin.write(input);
    await stdin.end();
  } catch {
    // The other end of the pipe is closed.
  }
}

export function isRunning({
  exitCode,
  signalCode,
}: Pick<RunningProgram, "exitCode" | "signalCode">): boolean {
  return exitCode === null && signalCode === null;
}

/** Lets the kernel execute a file that does nothing. Returns the error code if it refuses, such as `ENOEXEC`. */
export function tryToExecute(path: string): string | undefined {
  try {
    Bun.spawnSync([path], { stdio: ["ignore", "ignore", "ignore"], env: {}, timeout: 1000 });
    return undefined;
  } catch (error) {
    return errorCode(error) ?? "EIO";
  }
}

/** Kills the helper and everything that it started, even after the helper's own end. */
export function endHelper(helper: Pick<RunningProgram, "pid" | "exitCode" | "signalCode">): void {
  if (isWindows) endTree(helper);
  else sendSignal(-helper.pid, "SIGKILL");
}

/** Windows has no process groups: it knows who started whom as long as that one lives. */
function endTree(helper: Pick<RunningProgram, "pid" | "exitCode" | "signalCode">): void {
  if (!isRunning(helper)) return;
  const taskkill = Bun.which("taskkill");
  if (taskkill === null) sendSignal(helper.pid, "SIGKILL");
  else Bun.spawnSync([taskkill, "/T", "/F", "/PID", String(helper.pid)], { windowsHide: true });
}

/** Runs a program to its end. Rejects with a BoughError that names it when the deadline has passed. */
export async function runHelper(
  command: readonly string[],
  { input = "", ...options }: SpawnSettings & Deadline & { input?: string },
): Promise<HelperResult> {
  const helper = startHelper(command, options);
  return await beforeDeadline(helper, command, waitForEnd(helper, input), options);
}

/** Resolves as `awaited` does. If that rejects, the deadline passes, or the signal is aborted, kills the helper and rejects. */
export async function beforeDeadline<T>(
  helper: RunningProgram,
  command: readonly string[],
  awaited: Promise<T>,
  { clock, seconds, signal, failure = "did not end", hint }: Deadline,
): Promise<T> {
  const over = new AbortController();
  const stop = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]);
  const deadline = clock.sleep(seconds * 1000, stop).then(() => {
    throw new BoughError(`${programOf(command)} ${failure} within ${nameSeconds(seconds)}, and was stopped`, {
      hint: hint ?? `Run it by hand to see where it hangs: ${command.join(" ")}`,
    });
  });
  try {
    return await Promise.race([awaited, deadline]);
  } catch (error) {
    endHelper(helper);
    // A helper that waits for the disk does not end at once. bough's own end must not wait for it.
    helper.unref();
    throw error;
  } finally {
    over.abort();
  }
}

async function waitForEnd(helper: Subprocess<"pipe", "pipe", "pipe">, input: string): Promise<HelperResult> {
  const output = Promise.all([new Response(helper.stdout).text(), new Response(helper.stderr).text()]);
  await writeInput(helper, input);
  const status = await helper.exited;
  // A child left behind would keep the pipes open as long as it lives: util-linux 2.38's `unshare --map-auto` leaves one that
  // waits forever if user namespaces are forbidden.
  endHelper(helper);
  const [stdout, stderr] = await output;
  return { status, stdout, stderr };
}

function programOf([path = ""]: readonly string[]): string {
  return basename(path);
}

/** Sends a signal to a process, or to a process group if `pid` is negative. Does nothing if it has ended. */
export function sendSignal(pid: number, signal: number | NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended.
  }
}

/** Maximum timeout of a command, in seconds: ten years, which stands for none. */
export const maxTimeout = 10 * 365 * 86_400;

/** Returns a signal that is aborted after some seconds with an error, unless `end` is called first. */
export function startDeadline(
  clock: Clock,
  seconds: number,
  failure: string,
): { signal: AbortSignal; end: () => void } {
  const late = new AbortController();
  const over = new AbortController();
  clock.sleep(seconds * 1000, over.signal).then(
    () => late.abort(new BoughError(`${failure} within ${nameSeconds(seconds)}`)),
    () => undefined,
  );
  return { signal: late.signal, end: () => over.abort() };
}

/** Returns `1 second`, `10 seconds`. */
export function nameSeconds(seconds: number): string {
  return `${seconds} ${seconds === 1 ? "second" : "seconds"}`;
}
