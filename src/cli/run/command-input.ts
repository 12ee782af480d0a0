/** The input of a command: a `--script`, run by a shell or by the interpreter in its first line, or piped standard input. */
import { posix, resolve } from "node:path";
import { BoughError, usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { rejectOnAbort } from "../../service/http/deadline.ts";
import { readAtMost } from "../../streams.ts";
import { reasonOf } from "../../system-error.ts";
import type { Log } from "../../terminal/log.ts";
import type { Runtime } from "../process/runtime.ts";

export interface Script {
  /** The interpreter and its arguments. */
  words: readonly string[];
  text: Uint8Array;
}

/** @param given a path, or `-` for standard input */
export async function readScript(given: string, runtime: Runtime, log: Log): Promise<Script> {
  const { inputs, signal, workingDirectory } = runtime;
  if (given === "-") {
    const text = await readPipedInput(runtime, log);
    if (text !== undefined) return { words: ["sh", ...scriptOnInput], text };
    throw usageError(
      wording`${{ option: "script" }} - reads standard input, and nothing is piped in`,
      wording`For example: ${{ command: "run", options: [{ option: "script", letter: "I", value: "-" }], isLine: true }} < script.sh`,
    );
  }
  try {
    const text = await inputs.read(resolve(workingDirectory, given), { maxBytes, signal });
    return { words: interpreterOf(text), text };
  } catch (error) {
    signal.throwIfAborted();
    throw new BoughError(wording`cannot read ${{ option: "script" }} ${given}: ${reasonOf(error)}`, {
      kind: "usage",
      cause: error,
    });
  }
}

/** Options of a shell that reads a script from standard input; the script's arguments follow. */
const scriptOnInput = ["-s", "--"];
const shells = /^(sh|ash|bash|dash|ksh|zsh)$/;

/**
 * Returns the interpreter that the first line names, unless that is bough itself: `#!/usr/bin/env -S bough run -I`. Shells get
 * `-s` to read standard input, other programs `-`.
 */
function interpreterOf(text: Buffer): string[] {
  const [, line = ""] = /^#!([^\n\r]*)/.exec(text.subarray(0, 1024).toString()) ?? [];
  const words = line.split(/\s+/).filter((word) => word !== "");
  const isEnv = posix.basename(words[0] ?? "") === "env";
  const [program = "", ...flags] = isEnv ? words.slice(words[1] === "-S" ? 2 : 1) : words;
  const name = posix.basename(program);
  if (name === "" || name === "bough") return ["sh", ...scriptOnInput];
  return [program, ...flags, ...(shells.test(name) ? scriptOnInput : ["-"])];
}

/** The maximum size of input that is sent in one request. */
const maxBytes = 64 * 1024 * 1024;
const slowInputMilliseconds = 2000;
const emptyInput = process.platform === "win32" ? "< NUL" : "</dev/null";

/** The time within which most input ends, so that it can be sent with the request. */
const firstInputMilliseconds = 100;
const maxFirstBytes = 1024 * 1024;

/** The beginning of piped input, and the rest of it unless the input has ended. */
export interface PipedInput {
  first: Uint8Array;
  rest: AsyncIterable<Uint8Array> | undefined;
}

/**
 * Reads the beginning of standard input if it is piped. The writer may keep the pipe open without writing to it, and the command may read
 * only a part. Returns `undefined` if nothing is piped in, or if an option has read standard input.
 */
export async function readFirstInput(runtime: Runtime): Promise<PipedInput | undefined> {
  const { stdin, inputs, clock, signal } = runtime;
  if (!stdin.isPiped || inputs.hasReadStandardInput) return undefined;
  const chunks = inputs.takeStandardInput("the input of the command")[Symbol.asyncIterator]();
  const timer = new AbortController();
  const timeout = clock.sleep(firstInputMilliseconds, timer.signal).then(
    () => "late" as const,
    () => "late" as const,
  );
  const first: Uint8Array[] = [];
  let size = 0;
  let pending = chunks.next();
  try {
    for (;;) {
      const next =
        size < maxFirstBytes ? await rejectOnAbort(signal, Promise.race([pending, timeout])) : "late";
      if (next === "late") return { first: Buffer.concat(first), rest: remainingChunks(pending, chunks) };
      if (next.done === true) return { first: Buffer.concat(first), rest: undefined };
      first.push(next.value.slice());
      size += next.value.byteLength;
      pending = chunks.next();
    }
  } finally {
    timer.abort();
    // The promise may have no handler any more.
    pending.catch(() => undefined);
  }
}

async function* remainingChunks(
  pending: Promise<IteratorResult<Uint8Array>>,
  chunks: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  for (let next = await pending; next.done !== true; next = await chunks.next()) yield next.value;
}

/**
 * Reads all of standard input if it is piped. Returns `undefined` if nothing is piped in, or if an option has read standard input. Logs a
 * message if the input does not end soon.
 */
export async function readPipedInput(runtime: Runtime, log: Log): Promise<Uint8Array | undefined> {
  const { stdin, inputs, clock, signal } = runtime;
  if (!stdin.isPiped || inputs.hasReadStandardInput) return undefined;
  const done = new AbortController();
  clock.sleep(slowInputMilliseconds, done.signal).then(
    () => log.info(`reading standard input until it ends; use ${emptyInput} if the command reads none`),
    () => undefined,
  );
  try {
    return await rejectOnAbort(signal, readAll(inputs.takeStandardInput("the input of the command")));
  } finally {
    done.abort();
  }
}

async function readAll(source: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const { bytes, isWhole } = await readAtMost(maxBytes, source);
  if (isWhole) return bytes;
  throw usageError(
    "standard input is larger than 64 MiB, the maximum that can be sent",
    wording`Give it as a file: ${{ option: "file" }} INPUT:/tmp/input.`,
  );
}
