/** The one place that starts another program: each is in a session of its own, so that all of it can be ended. */
import type { Subprocess } from "bun";
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { startOnPipes } from "./pipes.ts";
import { type Environment, findProgram } from "./programs.ts";
import { nameSeconds } from "./seconds.ts";

/** A program that runs. */
export type Running = Pick<
  Subprocess,
  "pid" | "exited" | "exitCode" | "signalCode" | "resourceUsage" | "ref" | "unref"
>;

/** One that is written to and read. */
export interface Helper extends Running {
  readonly stdin: InputSink;
  readonly stdout: AsyncIterable<Uint8Array>;
  readonly stderr: AsyncIterable<Uint8Array>;
  /** Lets go of what nobody has read or written; where there is none, that goes by itself. */
  discard?(): void;
}

/** Where a program's standard input is written to. */
export interface InputSink {
  write(data: string | Uint8Array): number | Promise<number>;
  flush(): number | Promise<number>;
  end(): unknown;
}

interface HelperPlace {
  /** All that the program gets to see of it; see `helperEnvironment`. */
  environment: Readonly<Record<string, string>>;
  workingDirectory?: string;
  /** Open files that it gets as its descriptors 3 and so on. */
  descriptors?: readonly (number | undefined)[];
}

export interface Deadline {
  clock: Clock;
  /** How long to wait before the helper and all that it started are killed. */
  seconds: number;
  /** Ends the helper earlier; the reason is what is thrown then. */
  signal?: AbortSignal;
  /** What it has not done by then: "did not end" if not said. */
  failure?: string;
  /** What to do about a helper that takes longer; the command line to try by hand if not said. */
  hint?: string;
}

interface HelperEnd {
  /** 128 and the signal's number where one has ended it, as shells have it. */
  status: number;
  stdout: string;
  stderr: string;
}

/**
 * Starts a program that leads a session of its own: a Ctrl-C in the terminal is bough's to act on, and `endHelper` reaches
 * what it started. Whoever starts one waits for it with a deadline, or for as long as the operation's own timeout allows.
 */
export function startHelper(
  command: readonly string[],
  place: HelperPlace,
): Subprocess<"pipe", "pipe", "pipe"> {
  return Bun.spawn([...command], {
    ...spawnOptions(place),
    stdio: ["pipe", "pipe", "pipe", ...furtherDescriptors(place)],
  });
}

/** Does what `startHelper` does, with pipes that the program's own children may open by name, such as `/dev/stdout`. */
export function startPipedHelper(command: readonly string[], place: HelperPlace): Helper {
  return startOnPipes((pipes) =>
    Bun.spawn([...command], {
      ...spawnOptions(place),
      stdio: [...pipes, ...furtherDescriptors(place)],
    }),
  );
}

function spawnOptions(place: HelperPlace) {
  return {
    ...(place.workingDirectory === undefined ? {} : { cwd: place.workingDirectory }),
    env: { ...place.environment },
    detached: true,
  };
}

function furtherDescriptors({ descriptors = [] }: HelperPlace): (number | null)[] {
  const given = descriptors.slice(0, descriptors.findLastIndex((descriptor) => descriptor !== undefined) + 1);
  return given.map((descriptor) => descriptor ?? null);
}

/**
 * The command of a program that the kernel kills the moment bough is gone, however bough went; not what that program starts
 * in turn. It may do nothing before it has read a line of its standard input: bough can be gone before the kernel is told.
 */
export function dyingWithParent(command: readonly string[], environment: Environment): string[] {
  return [findProgram("setpriv", environment), "--pdeathsig", "KILL", ...command];
}

/** Writes a line that a program waits for. One that cannot read it has ended, or will: that says why. */
export async function sendLine({ stdin }: Pick<Helper, "stdin">, line = ""): Promise<void> {
  try {
    await Promise.all([stdin.write(`${line}\n`), stdin.flush()]);
  } catch {
    // The pipe is closed at its other end.
  }
}

/** Kills the helper and all that it started, also what is left of them after its end. */
export function endHelper(helper: Pick<Running, "pid">): void {
  try {
    process.kill(-helper.pid, "SIGKILL");
  } catch {
    // Nobody is left.
  }
}

/** Runs a program to its end, without input. Rejects with a BoughError that names it when the deadline has passed. */
export async function runHelper(
  command: readonly string[],
  options: HelperPlace & Deadline,
): Promise<HelperEnd> {
  const helper = startHelper(command, options);
  return await beforeDeadline(helper, command, toItsEnd(helper), options);
}

/** What is awaited of a helper. Where the deadline passes first, or the signal is aborted, the helper is ended. */
export async function beforeDeadline<T>(
  helper: Running,
  command: readonly string[],
  awaited: Promise<T>,
  { clock, seconds, signal, failure = "did not end", hint }: Deadline,
): Promise<T> {
  const over = new AbortController();
  const stop = signal === undefined ? over.signal : AbortSignal.any([over.signal, signal]);
  const deadline = clock.sleep(seconds * 1000, stop).then(() => {
    throw new BoughError(`${programOf(command)} ${failure} within ${nameSeconds(seconds)}, and was stopped`, {
      hint: hint ?? `See by hand where it stands still: ${command.join(" ")}`,
    });
  });
  try {
    return await Promise.race([awaited, deadline]);
  } catch (error) {
    endHelper(helper);
    // One that the disk holds does not go at once; bough's own end does not wait for it.
    helper.unref();
    throw error;
  } finally {
    over.abort();
  }
}

async function toItsEnd(helper: Subprocess<"pipe", "pipe", "pipe">): Promise<HelperEnd> {
  const said = Promise.all([new Response(helper.stdout).text(), new Response(helper.stderr).text()]);
  await helper.stdin.end();
  const status = await helper.exited;
  // A child that it has left behind would hold the pipes for as long as it lives: util-linux 2.38's `unshare --map-auto` leaves
  // one that waits for ever where user namespaces are forbidden.
  endHelper(helper);
  const [stdout, stderr] = await said;
  return { status, stdout, stderr };
}

function programOf([path = ""]: readonly string[]): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
