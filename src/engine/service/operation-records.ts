import type { Service } from "../../service/client.ts";
import type { OperationSummary } from "../../service/operations/operation-records.ts";
import { commandOf, outputBytes } from "../../service/wire/operation.ts";
import { withOutput } from "../processes/folded-result.ts";
import { listOperations } from "../records/operation-list.ts";
import type { Operation } from "../records/operations.ts";
import { requireOperation } from "../recovery.ts";
import type { EngineState } from "../state.ts";
import { type Calls, parseTimeFilter } from "./calls.ts";

type OperationRecords = Pick<Service, "listOperations" | "getOperation" | "recordedOutput">;

/** Records of operations, whichever process has started them. */
export function createOperationRecords(state: EngineState, { read }: Calls): OperationRecords {
  return {
    listOperations: ({ status, kind, since, until, limit }) =>
      read(() => {
        const filter = {
          status,
          kind,
          since: parseTimeFilter(since),
          until: parseTimeFilter(until),
          limit,
          offset: 0,
        };
        return listOperations(state, filter).map((operation) => summarize(operation, state.clock.now()));
      }),

    getOperation: (uuid) =>
      read(async () => {
        const operation = await requireOperation(state, uuid);
        return {
          ...summarize(operation, state.clock.now()),
          hasEnded: operation.finishedAt !== null,
          resultImage: operation.resultImage,
          resultTag: operation.resultTag,
        };
      }),

    recordedOutput: (uuid) =>
      read(async () => {
        const { result } = await requireOperation(state, uuid);
        const events = () => state.events.readAll(uuid, state.closing);
        const output = result && (await withOutput(result, events));
        return { stdout: outputBytes(output?.stdout), stderr: outputBytes(output?.stderr) };
      }),
  };
}

function summarize(operation: Operation, now: number): OperationSummary {
  const { uuid, kind, status, error, createdAt, finishedAt, result } = operation;
  const { image } = operation.metadata;
  return {
    ...{ uuid, kind, status, error },
    createdAt: new Date(createdAt).toISOString(),
    durationSeconds: ((finishedAt ?? now) - createdAt) / 1000,
    command: commandOf(operation.metadata) ?? importedUrl(operation) ?? null,
    image: typeof image === "string" ? image : null,
    exitCode: result?.state?.exit_code ?? null,
    timedOut: result?.state?.timed_out === true,
  };
}

function importedUrl({ metadata: { registry } }: Operation): string | undefined {
  const url =
    typeof registry === "object" && registry !== null && "url" in registry ? registry.url : undefined;
  return typeof url === "string" ? url : undefined;
}
