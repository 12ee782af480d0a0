import { type ArgsDef, defineCommand } from "citty";
import { BoughError } from "../../errors.ts";
import type { Service } from "../../service/client.ts";
import type { OperationFilter, OperationSummary } from "../../service/operations/operation-records.ts";
import { isTerminal, type OperationStatus, operationStatuses } from "../../service/types.ts";
import { formatDuration } from "../../terminal/quantity.ts";
import { renderTable } from "../../terminal/table.ts";
import { type ArgumentDefinitions, oneOf, positiveInteger } from "../command-line/arguments.ts";
import type { Command, Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { parseTime } from "../command-line/time.ts";
import { connect } from "../service/connection.ts";
import { withoutSecrets } from "./secrets.ts";

const kinds = { run: "instance", import: "image_import" } as const;

const definitions: ArgumentDefinitions = {
  all: { type: "boolean", alias: "a", description: "Those that have ended, too" },
  status: {
    type: "string",
    completes: operationStatuses,
    valueHint: "STATUS",
    description: `Only ${operationStatuses.join(", ")}`,
  },
  kind: {
    type: "string",
    completes: ["run", "import"],
    valueHint: "KIND",
    description: "Only `run` or `import`",
  },
  since: {
    type: "string",
    valueHint: "WHEN",
    description: "Started since then: a date, or an age such as 1h",
  },
  until: { type: "string", valueHint: "WHEN", description: "Started until then" },
  limit: { type: "string", alias: "n", valueHint: "N", description: "The newest N (default: 50)" },
};

export const ps: Command = {
  definition: defineCommand<ArgsDef>({
    meta: { name: "ps", description: "List the operations that are under way, newest first." },
    args: definitions,
    run: ({ data }) => listOperations(data),
  }),
  examples: [
    ["ps", "what runs now"],
    ["ps --all --since 1h", "and what has ended in the last hour"],
    ["ps --status FAILED -f json", "as JSON, for other programs"],
  ],
  agentNote: "SUCCESS says that a command was run to its end; `bough show OP` has its exit code.",
};

async function listOperations(invocation: Invocation): Promise<void> {
  const { values, runtime, globals, log } = invocation;
  const limit = positiveInteger(values.text("limit"), "--limit") ?? 50;
  const kind = values.text("kind");
  const since = parseTime(values.text("since"), "--since", runtime.clock);
  const until = parseTime(values.text("until"), "--until", runtime.clock);
  const filter: OperationFilter = {
    limit,
    ...(kind === undefined ? {} : { kind: kinds[oneOf(kind, ["run", "import"], "--kind")] }),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
  };
  const statuses = readStatuses(values.text("status"), values.flag("all"));
  const { service, close } = await connect(runtime, globals, log);
  try {
    const operations = (await find(service, filter, statuses)).map(withoutSecrets);
    printResult(invocation, {
      id: operations.map(({ uuid }) => uuid),
      json: operations,
      table: (style) =>
        renderTable(
          ["OPERATION", "KIND", "STATUS", "CREATED", "DURATION", "COMMAND"],
          operations.map((operation) => [
            operation.uuid,
            operation.kind === kinds.import ? "import" : "run",
            operation.status,
            operation.createdAt ?? "-",
            operation.durationSeconds === null ? "-" : formatDuration(operation.durationSeconds),
            operation.command ?? "-",
          ]),
          style,
        ),
    });
  } finally {
    await close();
  }
}

/** `undefined`: whatever the status. */
function readStatuses(given: string | undefined, all: boolean): OperationStatus[] | undefined {
  if (given !== undefined) return [oneOf(given.toUpperCase(), operationStatuses, "--status")];
  return all ? undefined : operationStatuses.filter((status) => !isTerminal(status));
}

/** One question for each status: a long list of ended operations may stand before one that still runs. */
async function find(
  service: Service,
  filter: OperationFilter,
  statuses: OperationStatus[] | undefined,
): Promise<OperationSummary[]> {
  const filters = statuses === undefined ? [filter] : statuses.map((status) => ({ ...filter, status }));
  const lists = await Promise.all(filters.map((each) => service.listOperations(each)));
  if (service.capabilities.lacks("operationList"))
    throw new BoughError(`${service.address} has no list of its operations`);
  return lists
    .flat()
    .sort((a, b) => ((a.createdAt ?? "") < (b.createdAt ?? "") ? 1 : -1))
    .slice(0, filter.limit);
}
