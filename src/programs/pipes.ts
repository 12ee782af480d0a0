/** Programs on pipes. Bun's "pipe" is a socket, which no program can open as `/dev/stdout`. */
import { closeSync, constants, openSync } from "node:fs";
import type { Subprocess } from "bun";
import { BoughError } from "../errors.ts";
import { errorCode } from "../system-error.ts";
import { closeOnExec, libc } from "./libc.ts";

type Standard = readonly [stdin: number, stdout: number, stderr: number];

/** Starts a program by `start`, which gets the pipe ends for its standard streams. */
export function startOnPipes(start: (ends: Standard) => Subprocess) {
  using theirs = new DisposableStack();
  using own = new DisposableStack();
  const open = (end: "read" | "write") => {
    const pipe = openPipe(end);
    theirs.defer(() => closeSync(pipe.theirs));
    own.defer(() => closeSync(pipe.own));
    return pipe;
  };
  const [stdin, stdout, stderr] = [open("write"), open("read"), open("read")];
  const process = start([stdin.theirs, stdout.theirs, stderr.theirs]);
  const [input, output, errors] = [new Input(stdin.own), new Output(stdout.own), new Output(stderr.own)];
  // From now on the streams close this process's ends.
  own.move();
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
}

/** A program's standard input. */
class Input {
  readonly #descriptor: number;
  readonly #sink: Bun.FileSink;
  #ended: Promise<void> | undefined;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
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
  readonly #chunks: AsyncGenerator<Uint8Array>;
  #hasBegun = false;

  constructor(descriptor: number) {
    this.#descriptor = descriptor;
    this.#chunks = this.#read();
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    return this.#chunks;
  }

  async *#read(): AsyncGenerator<Uint8Array> {
    this.#hasBegun = true;
    try {
      yield* Bun.file(this.#descriptor).stream();
    } finally {
      closeSync(this.#descriptor);
    }
  }

  /** Closes the output. What is waiting for a chunk gets it first. */
  discard(): void {
    // If no chunk was read, the generator has not begun, and so never closes it.
    if (!this.#hasBegun) closeSync(this.#descriptor);
    this.#hasBegun = true;
    this.#chunks.return(undefined).catch(() => undefined);
  }
}

/** Opens a pipe whose `end` is this process's. That end is non-blocking; the program's blocks, as programs expect. */
function openPipe(end: "read" | "write"): { own: number; theirs: number } {
  const ends = new Int32Array(2);
  // With valid arguments pipe2(2) fails with EMFILE or ENFILE only.
  if (libc().pipe2(ends, closeOnExec) !== 0) throw tooManyFiles();
  const [read = -1, write = -1] = ends;
  const [blocking, theirs] = end === "read" ? [read, write] : [write, read];
  const access = end === "read" ? constants.O_RDONLY : constants.O_WRONLY;
  try {
    return { own: openSync(`/proc/self/fd/${blocking}`, access | constants.O_NONBLOCK), theirs };
  } catch (error) {
    closeSync(theirs);
    throw errorCode(error) === "EMFILE" ? tooManyFiles() : error;
  } finally {
    closeSync(blocking);
  }
}

function tooManyFiles(): BoughError {
  return new BoughError("cannot create a pipe for a program", {
    hint: "Too many files may be open: see ulimit -n.",
  });
}
