import type { Invocation } from "./command.ts";
import { commandLine } from "./command-line.ts";
import type { Connection } from "./connection.ts";
import { printResult } from "./result.ts";
import { prepareInstance, type RunRequest, startImage } from "./run-request.ts";

/** Starts the command, and leaves it to the service. */
export async function runDetached(
  request: RunRequest,
  invocation: Invocation,
  connection: Connection,
): Promise<void> {
  const { globals, log } = invocation;
  const image = await startImage(request, connection);
  const operation = await connection.service.spawn(
    await prepareInstance(request, image, invocation, connection),
  );
  const line = (...words: string[]) => commandLine(globals, words);
  log.info(
    `\`${line("logs", "--follow", operation)}\` shows its output, \`${line("kill", operation)}\` ends it`,
  );
  if (!request.isDisposable) {
    log.info(
      `the session stays where it is: \`${line("show", operation)}\` names the image that comes of it`,
    );
  }
  printResult(invocation, { id: operation, json: { operation }, table: () => `${operation}\n` });
}
