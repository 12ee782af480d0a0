import type { OperationFilter, OperationSummary } from "../../service/operations/operation-records.ts";
import { activeStatuses, type OperationStatus, operationStatuses } from "../../service/wire/operation.ts";
import { durationCell } from "../../terminal/table.ts";
import { command, type Invocation, type Surroundings } from "../command-line/command.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import { listParsers, oneOf } from "../command-line/option-values.ts";
import { readOptions } from "../command-line/options.ts";
import { printed, type Result } from "../command-line/result.ts";
import {
  findOperations,
  kindNames,
  kindOf,
  statusOf,
  withoutSecrets,
} from "../references/operation-argument.ts";
import { connect } from "../service/connection.ts";

const psDefinitions = {
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
} as const satisfies ArgumentDefinitions;

export const ps = command({
  name: "ps",
  description: "List the operations that are under way, newest first.",
  args: psDefinitions,
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

function readAndList({ values, ...surroundings }: Invocation): Promise<Result<OperationSummary[]>> {
  const {
    status,
    all,
    kind,
    limit = 50,
    since,
    until,
  } = readOptions(values, psDefinitions, {
    ...listParsers(surroundings.runtime.clock),
    kind: (text) => oneOf(text, kindNames, "--kind"),
    status: (text) =>
      operationStatuses.find((known) => known === text.toUpperCase()) ??
      oneOf(text, operationStatuses, "--status"),
  });
  const filter: OperationFilter = {
    ...{ limit, since, until },
    kind: kind && (kind === "run" ? "instance" : "image_import"),
  };
  const shown = all === true ? undefined : activeStatuses;
  return listOperations(filter, status === undefined ? shown : [status], surroundings);
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
