import { BoughError } from "../../errors.ts";
import type { OperationDetails } from "../../service/operations/operation-records.ts";
import { formatDuration } from "../../terminal/quantity.ts";
import { type Cell, renderTable } from "../../terminal/table.ts";
import { command, type Invocation, type Surroundings } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import {
  kindOf,
  operationArgument,
  requireOperation,
  statusOf,
  withoutSecrets,
} from "../references/operation-argument.ts";
import { sessionKey } from "../references/session-argument.ts";
import { createOutputRelay } from "../run/instance.ts";
import { type Connection, connectQuietly } from "../service/connection.ts";

export const show = command({
  name: "show",
  description: "Show operations: status, exit code and resulting image.",
  args: {
    op: { ...operationArgument, multiple: true },
  },
  needs: "service",
  run: showOperation,
  examples: [
    ["show 5a2c3d38-8a77-4d7f-a6a5-d2f7a5b0f0c9", "one that `run -d`, `ps` or a build's log shows"],
    ["show 5a2c3d38 -f json", "as JSON, by its first digits; several give an array"],
    ["-S work show @ HEAD~1", "what made the current image of the session `work`, and the image before"],
  ],
  agentNote:
    "`hasEnded` and `exitCode` of -f json say whether it has ended and how; `bough logs OP` has the output.",
});

async function showOperation(invocation: Invocation): Promise<void> {
  const { values, runtime } = invocation;
  await using connection = await connectQuietly(invocation);
  const operations: OperationDetails[] = [];
  const problems: BoughError[] = [];
  for (const given of values.positionals) {
    try {
      operations.push(await describeOperation(given, invocation, connection));
    } catch (error) {
      // The other operations are shown nevertheless.
      if (!(error instanceof BoughError) || runtime.signal.aborted) throw error;
      problems.push(error);
    }
  }
  const [first, ...others] = problems;
  const problem =
    others.length === 0 ? first : new BoughError(problems.map(({ message }) => message).join("\n"));
  if (problem !== undefined && operations.length === 0) throw problem;
  printResult(invocation, {
    id: operations.map(({ uuid }) => uuid),
    json: values.positionals.length === 1 ? operations[0] : operations,
    table: (style) =>
      operations
        .map((operation) =>
          renderTable({ header: ["OPERATION", operation.uuid], rows: rowsOf(operation) }, style),
        )
        .join("\n"),
  });
  if (problem !== undefined) throw problem;
}

/** Returns the details of an operation. `given`: the argument that names it. */
export async function describeOperation(
  given: string,
  invocation: Pick<Surroundings, "globals" | "runtime">,
  connection: Connection,
): Promise<OperationDetails> {
  return withoutSecrets(await requireOperation(connection, given, sessionKey(invocation)));
}

function rowsOf(operation: OperationDetails): Cell[][] {
  const { exitCode, durationSeconds } = operation;
  const rows: [string, string | null][] = [
    ["KIND", kindOf(operation)],
    ["STATUS", statusOf(operation)],
    ["ERROR", operation.error],
    ["COMMAND", operation.command],
    ["IMAGE", operation.image],
    ["EXIT CODE", exitCode === null ? null : String(exitCode)],
    ["RESULT IMAGE", operation.resultImage],
    ["RESULT TAG", operation.resultTag],
    ["CREATED", operation.createdAt],
    ["DURATION", durationSeconds === null ? null : formatDuration(durationSeconds)],
  ];
  return rows.flatMap(([name, value]) => (value === null ? [] : [[name, { whole: value }]]));
}

export const logs = command({
  name: "logs",
  description: "Print an operation's output, byte for byte: stdout to stdout, stderr to stderr.",
  args: {
    op: operationArgument,
    follow: { type: "boolean", alias: "f", description: "Follow the output until the operation has ended" },
  },
  needs: "service",
  async run(invocation) {
    const [given = ""] = invocation.values.positionals;
    await printLogs(given, { follows: invocation.values.flag("follow") }, invocation);
  },
  examples: [
    ["logs 5a2c3d38", "the output so far"],
    ["logs --follow 5a2c3d38", "also the output that follows; Ctrl-C does not cancel the operation"],
  ],
  agentNote: "The exit code of `logs` is 0; `bough show OP` has that of the command.",
});

/** Prints the output of an operation so far, or with `follows` to its end. Returns the details of the operation. */
export async function printLogs(
  given: string,
  { follows }: { follows: boolean },
  surroundings: Surroundings,
): Promise<OperationDetails> {
  const { runtime, log } = surroundings;
  await using connection = await connectQuietly(surroundings);
  const { service } = connection;
  const operation = await requireOperation(connection, given, sessionKey(surroundings));
  const { uuid, hasEnded } = operation;
  const relay = createOutputRelay(runtime, service, log);
  // For an operation that has ended, this returns at once.
  if (follows || hasEnded) await relay.finish(await service.follow(uuid, undefined, relay));
  else await service.readEventsSoFar(uuid, relay);
  return operation;
}
