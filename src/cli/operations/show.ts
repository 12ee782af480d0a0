import { type ArgsDef, defineCommand } from "citty";
import type { OperationDetails } from "../../service/operations/operation-records.ts";
import { formatDuration } from "../../terminal/quantity.ts";
import { renderTable } from "../../terminal/table.ts";
import type { ArgumentDefinitions } from "../command-line/arguments.ts";
import type { Command, Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { connect } from "../service/connection.ts";
import { operationArgument, requireOperation } from "./operation-argument.ts";
import { withoutSecrets } from "./secrets.ts";

const definitions: ArgumentDefinitions = {
  op: operationArgument,
};

export const show: Command = {
  definition: defineCommand<ArgsDef>({
    meta: { name: "show", description: "Show an operation: its status, exit code and resulting image." },
    args: definitions,
    run: ({ data }) => showOperation(data),
  }),
  examples: [
    ["show 5a2c3d38-8a77-4d7f-a6a5-d2f7a5b0f0c9", "one that `run -d`, `ps` or a build's log names"],
    ["show 5a2c3d38 -f json", "as JSON; the first digits will do"],
  ],
  agentNote:
    "`hasEnded` and `exitCode` of -f json say whether it is over and how; `bough logs OP` has the output.",
};

async function showOperation(invocation: Invocation): Promise<void> {
  const { values, runtime, globals, log } = invocation;
  const { service, close } = await connect(runtime, globals, { ...log, info: log.debug });
  try {
    const operation = withoutSecrets(await requireOperation(service, values.positionals[0] ?? ""));
    printResult(invocation, {
      id: operation.uuid,
      json: operation,
      table: (style) => renderTable(["OPERATION", operation.uuid], rowsOf(operation), style),
    });
  } finally {
    await close();
  }
}

function rowsOf(operation: OperationDetails): string[][] {
  const { exitCode, durationSeconds } = operation;
  const rows: [string, string | null][] = [
    ["KIND", operation.kind],
    ["STATUS", operation.timedOut ? `${operation.status} (stopped by its timeout)` : operation.status],
    ["ERROR", operation.error],
    ["COMMAND", operation.command],
    ["IMAGE", operation.image],
    ["EXIT CODE", exitCode === null ? null : String(exitCode)],
    ["RESULT IMAGE", operation.resultImage],
    ["RESULT TAG", operation.resultTag],
    ["CREATED", operation.createdAt],
    ["DURATION", durationSeconds === null ? null : formatDuration(durationSeconds)],
  ];
  return rows.flatMap(([name, value]) => (value === null ? [] : [[name, value]]));
}
