/** Programs on pipes. Bun's "pipe" is a socket, which no program can open as `/dev/stdout`. */
import { closeSync, constants, openSync } from "node:fs";
import type { Subprocess } from "bun";
import { BoughError } from "../../errors.ts";
import { closeOnExec, libc } from "./libc.ts";

type Standard = readonly [stdin: number, stdout: number, stderr: number];

/** Starts a program by `start`, which gets the pipe ends for its standard streams. */
export function startOnPipes(start: (ends: Standard) => Subprocess) {
  const [stdin, stdout, stderr] = [openPipe(), openPipe(), openPipe()];
  const theirs = [stdin.read, stdout.write, stderr.write] as const;
  const own = [stdin.write, stdout.read, stderr.read] as const;
  try {
    const process = start(theirs);
    const [input, output, errors] = [new Input(own[0]), new Output(own[1]), new Output(own[2])];
    return {
      get pid() {
        return process.pid;
      },
      get exited() {
        return process.exited;
      },
      get exitCode() {
        return process.exitCode;
      },
      get signalCode() {
        return process.signalCode;
      },
      resourceUsage: () => process.resourceUsage(),
      ref: () => process.ref(),
      unref: () => process.unref(),
      stdin: input,
      stdout: output,
      stderr: errors,
      discard() {
        input.end().catch(() => {});
        for (const stream of [output, errors]) stream.discard();
      },
    };
  } catch (error) {
    for (const descriptor of own) closeSync(descriptor);
    throw error;
  } finally {
    for (const descriptor of theirs) closeSync(descriptor);
  }
}

/** A program's standard input. */
class Input {
  readonly #descriptor: number;
  readonly #sink: Bun.FileSink;
  #ended: Promise<void> | undefined;

  constructor(descriptor: number) {
    this.#descriptor = reopen(descriptor, constants.O_WRONLY);
    this.#sink = Bun.file(this.#descriptor).writer();
  }

  write(data: string | Uint8Array): number | Promise<number> {
    return this.#sink.write(data as Uint8Array);
  }

  flush(): number | Promise<number> {
    return this.#sink.flush();
  }

  /** Closes the pipe. */
  end(): Promise<void> {
    this.#ended ??= this.#end();
    return this.#ended;
  }

  async #end(): Promise<void> {
    try {
      await this.#sink.end();
    } finally {
      closeSync(this.#descriptor);
    }
  }
}

/** A program's output, which can be read once. */
class Output implements AsyncIterable<Uint8Array> {
  readonly #descriptor: number;
  #isTaken = false;

  constructor(descriptor: number) {
    this.#descriptor = reopen(descriptor, constants.O_RDONLY);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    if (this.#isTaken) return;
    this.#isTaken = true;
    try {
      yield* Bun.file(this.#descriptor).stream();
    } finally {
      closeSync(this.#descriptor);
    }
  }

  /** Closes the output if it is not being read. */
  discard(): void {
    if (!this.#isTaken) closeSync(this.#descriptor);
    this.#isTaken = true;
  }
}

/** Reopens this process's end of the pipe as non-blocking. The program's end stays blocking, as programs expect. */
function reopen(descriptor: number, access: number): number {
  try {
    return openSync(`/proc/self/fd/${descriptor}`, access | constants.O_NONBLOCK);
  } finally {
    closeSync(descriptor);
  }
}

function openPipe(): { read: number; write: number } {
  const ends = new Int32Array(2);
  if (libc().pipe2(ends, closeOnExec) !== 0) {
    throw new BoughError("cannot create a pipe for a program", {
      hint: "Too many files may be open: see ulimit -n.",
    });
  }
  const [read = -1, write = -1] = ends;
  return { read, write };
}
