import { shortId } from "../../terminal/short-id.ts";
import { visible } from "../../visible.ts";
import type { Invocation, Surroundings } from "../command-line/command.ts";
import { commandLine } from "../command-line/globals.ts";
import { printResult } from "../command-line/result.ts";
import { isEmbedded } from "../service/choice.ts";
import { type Connection, connectQuietly } from "../service/connection.ts";
import { secretsByEnvironment } from "./execution-options.ts";
import { type UnresolvedRun, withCommand, withSessionState } from "./image-command.ts";
import { resolveStartImage, withInstance } from "./request.ts";

/** The variable that marks the background process, which contains the engine. */
const backgroundVariable = "BOUGH_BACKGROUND";

/** True if the command line has to run again in the background, since the embedded engine ends with its process. */
export function needsBackground({ runtime, globals }: Surroundings): boolean {
  return runtime.environment[backgroundVariable] === undefined && isEmbedded(runtime, globals);
}

/** Starts the command and returns without waiting for it, except in the background process, in which the engine runs. */
export async function runDetached(asked: UnresolvedRun, invocation: Invocation): Promise<number> {
  if (invocation.runtime.environment[backgroundVariable] !== undefined)
    return await runInBackgroundProcess(asked, invocation);
  await using connection = await connectQuietly(invocation);
  report(await start(asked, invocation, connection), asked, invocation);
  return 0;
}

async function start(
  given: UnresolvedRun,
  invocation: Surroundings,
  connection: Connection,
): Promise<string> {
  const asked = withSessionState(given, connection.store);
  const image = await resolveStartImage(asked, invocation, connection);
  const request = await withCommand(asked, image, invocation, connection);
  return await withInstance(request, image, invocation, connection, (instance) =>
    connection.service.spawn(instance),
  );
}

function report(operation: string, { isDisposable }: UnresolvedRun, invocation: Surroundings): void {
  const { globals, log, runtime } = invocation;
  const line = (...words: string[]) => commandLine(globals, words);
  const id = runtime.stderr.isTerminal ? shortId(operation) : operation;
  log.info(`\`${line("logs", "--follow", id)}\` shows its output, \`${line("kill", id)}\` cancels it`);
  if (!isDisposable) {
    log.info(`the session's image does not change: \`${line("show", id)}\` shows the resulting image`);
  }
  printResult(invocation, { id: operation, json: { operation }, table: () => `${visible(operation)}\n` });
}

/** Runs the command in the background process, whose parent reads only the operation's id. */
async function runInBackgroundProcess(asked: UnresolvedRun, invocation: Invocation): Promise<number> {
  await using connection = await connectQuietly(invocation);
  const operation = await start(asked, invocation, connection);
  invocation.runtime.stdout.write(`${operation}\n`);
  await invocation.runtime.stdout.flush();
  await connection.service.follow(operation);
  return 0;
}

/**
 * Runs the command line again in a background process, which prints the operation's id and ends with the operation. That process reads
 * the inputs, since a pipe can be read only once. Returns 0 or, if no operation was started, the exit code of the background process.
 */
export async function startBackgroundProcess(asked: UnresolvedRun, invocation: Invocation): Promise<number> {
  const { runtime, values } = invocation;
  const { environment, rewrite } = secretsByEnvironment(
    values.list("env"),
    asked.env,
    values.rest?.length ?? 0,
  );
  const child = runtime.runInBackground(
    { ...environment, [backgroundVariable]: "1" },
    // Variables of the command, such as CONTREE_TOKEN, must not choose another service.
    (words) => ["--local", ...rewrite(words)],
  );
  const warnings = forward(child.stderr, runtime.stderr.write);
  const operation = await readLine(child.stdout);
  if (operation === undefined) {
    await warnings;
    return (await child.exited) || 1;
  }
  report(operation, asked, invocation);
  return 0;
}

async function forward(
  source: ReadableStream<Uint8Array>,
  write: (bytes: Uint8Array) => void,
): Promise<void> {
  for await (const chunk of source) write(chunk);
}

/** Returns the first line; `undefined` if the stream ends before a line does. */
async function readLine(source: ReadableStream<Uint8Array>): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of source) {
    text += decoder.decode(chunk, { stream: true });
    const end = text.indexOf("\n");
    if (end >= 0) return text.slice(0, end);
  }
  return undefined;
}
