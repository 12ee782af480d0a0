import type { OperationFilter, OperationSummary } from "../../service/operations/operation-records.ts";
import { activeStatuses, type OperationStatus, operationStatuses } from "../../service/wire/operation.ts";
import { durationCell } from "../../terminal/table.ts";
import { command, type Invocation, type Surroundings } from "../command-line/command.ts";
import { oneOf, parseTime, positiveInteger } from "../command-line/option-values.ts";
import { printed, type Result } from "../command-line/result.ts";
import {
  findOperations,
  kindNames,
  kindOf,
  statusOf,
  withoutSecrets,
} from "../references/operation-argument.ts";
import { connect } from "../service/connection.ts";

export const ps = command({
  name: "ps",
  description: "List the operations that are under way, newest first.",
  args: {
    all: { type: "boolean", alias: "a", description: "List operations that have ended, too" },
    status: {
      type: "string",
      completes: operationStatuses,
      valueHint: "STATUS",
      description: `Only ${operationStatuses.join(", ")}`,
    },
    kind: {
      type: "string",
      completes: kindNames,
      valueHint: "KIND",
      description: "Only `run` or `import`",
    },
    since: {
      type: "string",
      valueHint: "WHEN",
      description: "Only operations started since a date, or an age such as 1h",
    },
    until: {
      type: "string",
      valueHint: "WHEN",
      description: "Only operations started until a date or an age",
    },
    limit: { type: "string", alias: "n", valueHint: "N", description: "The newest N (default: 50)" },
  },
  needs: "service",
  run: printed(readAndList),
  examples: [
    ["ps", "what runs now"],
    ["ps --all --since 1h", "also what has ended in the last hour"],
    ["ps --status FAILED -f json", "as JSON, for other programs"],
  ],
  agentNote:
    "`status` SUCCESS of -f json means that the command ran to its end; `exitCode`, or `bough show OP`, has its exit code.",
});

function readAndList(invocation: Invocation): Promise<Result<OperationSummary[]>> {
  const { values, runtime } = invocation;
  const limit = positiveInteger(values.text("limit"), "--limit") ?? 50;
  const given = values.text("kind");
  const kind = given === undefined ? undefined : oneOf(given, kindNames, "--kind");
  const filter: OperationFilter = {
    limit,
    kind: kind && (kind === "run" ? "instance" : "image_import"),
    since: parseTime(values.text("since"), "--since", runtime.clock),
    until: parseTime(values.text("until"), "--until", runtime.clock),
  };
  return listOperations(filter, readStatuses(values.text("status"), values.flag("all")), invocation);
}

/** @param statuses `undefined` for all */
export async function listOperations(
  filter: OperationFilter,
  statuses: readonly OperationStatus[] | undefined,
  surroundings: Surroundings,
): Promise<Result<OperationSummary[]>> {
  await using connection = await connect(surroundings);
  const { service } = connection;
  const operations = (await findOperations(service, filter, statuses)).map(withoutSecrets);
  return {
    id: operations.map(({ uuid }) => uuid),
    json: operations,
    table: () => ({
      header: ["OPERATION", "KIND", "STATUS", "CREATED", "DURATION", "COMMAND"],
      rows: operations.map((operation) => [
        { id: operation.uuid },
        kindOf(operation),
        statusOf(operation),
        { time: operation.createdAt ?? "" },
        durationCell(operation.durationSeconds),
        operation.command,
      ]),
    }),
  };
}

/** `undefined` for all statuses. */
function readStatuses(given: string | undefined, all: boolean): readonly OperationStatus[] | undefined {
  if (given !== undefined) {
    const known = operationStatuses.find((status) => status === given.toUpperCase());
    return [known ?? oneOf(given, operationStatuses, "--status")];
  }
  return all ? undefined : activeStatuses;
}
