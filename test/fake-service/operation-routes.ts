import { isTerminal, type OperationRecord, operationStatuses } from "../../src/service/wire/operation.ts";
import { answerWith } from "./answer.ts";
import type { RouteCall } from "./options.ts";
import { endOperation } from "./run.ts";

export function getOperation({ state, parameter }: RouteCall): Response {
  const operation = state.operations.get(parameter);
  return operation === undefined
    ? answerWith.error(404, `no operation ${parameter}`)
    : Response.json(operation.record);
}

export function listOperations({ state, recorded }: RouteCall): Response {
  const { status, kind, limit = "100", offset = "0" } = recorded.query;
  if (status !== undefined && !operationStatuses.some((known) => known === status))
    return answerWith.error(400, `unknown status ${status}`);
  const summaries = [...state.operations.values()]
    .map(({ record }) => record)
    .filter(
      (record) =>
        (status === undefined || record.status === status) && (kind === undefined || record.kind === kind),
    )
    .map(summarize)
    .reverse();
  return Response.json(summaries.slice(Number(offset), Number(offset) + Number(limit)));
}

export function cancelOperation({ state, parameter }: RouteCall): Response {
  const operation = state.operations.get(parameter);
  if (operation === undefined) return answerWith.error(404, `no operation ${parameter}`);
  if (isTerminal(operation.record.status)) return answerWith.error(409, "the operation has ended");
  endOperation(operation, { status: "CANCELLED" });
  return new Response(null, { status: 202 });
}

function summarize(record: OperationRecord) {
  const { uuid, kind, status, error, created_at, duration, image_uuid, result_image_uuid } = record;
  return { uuid, kind, status, error, created_at, duration, image_uuid, result_image_uuid };
}
