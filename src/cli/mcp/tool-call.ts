import { BoughError } from "../../errors.ts";
import type { Message } from "../../messages/wording.ts";
import type { Log } from "../../terminal/log.ts";
import type { Invocation, Surroundings } from "../command-line/command.ts";
import { createInputs } from "../process/inputs.ts";
import type { Output, Runtime } from "../process/runtime.ts";
import { messageForAgent } from "./agent-wording.ts";
import type { Root } from "./root.ts";

/** The context of one tool call. */
export interface ToolCall {
  /** The server's own invocation; `globals` ask for JSON. */
  invocation: Invocation;
  /** The directory that all files of this machine must be in. */
  root: Root;
  /** Aborted when the client cancels the call or disconnects. */
  signal: AbortSignal;
  /** Warnings of the commands that the call has run. */
  warnings: string[];
  /** Sends progress to the client: `done` of `total`, if that can be counted. */
  report(message: string, done?: number, total?: number): void;
}

/** Returns what an operation needs beside its request, derived from what the server has. */
export function surroundingsFor(
  { invocation, signal, warnings }: Pick<ToolCall, "invocation" | "signal" | "warnings">,
  { session, stdin }: { session?: string | undefined; stdin?: string | undefined } = {},
  streams: Partial<Pick<Runtime, "stdout" | "stderr">> = {},
): Surroundings {
  const globals = { ...invocation.globals, ...(session === undefined ? {} : { session }) };
  const input = inputOf(stdin);
  const runtime: Runtime = {
    ...invocation.runtime,
    isCalledByAgent: true,
    signal,
    stdin: input,
    // Reading a pipe in the agent's directory would block a thread of the server.
    inputs: createInputs(input).withoutPipes(),
    ...collectStreams().streams,
    ...streams,
    views: new Set(),
    // These would run the server's own command line again.
    runInBackground: unavailable,
    prepareReplacement: unavailable,
  };
  return { ...invocation, globals, runtime, log: warningLog(warnings) };
}

/** Returns a log that appends warnings and errors to `warnings`. */
export function warningLog(warnings: string[]): Log {
  const warn = (message: Message) => void warnings.push(messageForAgent(message));
  return { debug() {}, info() {}, warn, error: warn };
}

function unavailable(): never {
  throw new BoughError("this can't be done from within `bough mcp`", {
    hint: "Run bough in a shell for it.",
  });
}

function inputOf(text: string | undefined): Runtime["stdin"] {
  return {
    isTerminal: false,
    isPiped: text !== undefined,
    async *stream() {
      if (text !== undefined) yield Buffer.from(text);
    },
    setRawMode() {},
  };
}

/** Returns streams that keep what is written to them. */
export function collectStreams() {
  const collected = { stdout: collectOutput(), stderr: collectOutput() };
  return {
    streams: { stdout: collected.stdout.output, stderr: collected.stderr.output },
    text: (stream: keyof typeof collected) => collected[stream].bytes().toString(),
  };
}

function collectOutput(): { output: Output; bytes: () => Buffer } {
  const chunks: Uint8Array[] = [];
  const output: Output = {
    write: (data) => void chunks.push(typeof data === "string" ? Buffer.from(data) : data.slice()),
    writeAlone: (render) => void chunks.push(Buffer.from(render(Number.POSITIVE_INFINITY))),
    flush: async () => {},
    isTerminal: false,
    hasColor: false,
    columns: 80,
    rows: 24,
    onResize: () => () => {},
  };
  return { output, bytes: () => Buffer.concat(chunks) };
}
