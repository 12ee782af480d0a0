import { operationStatuses } from "../../service/wire/operation.ts";
import { cancelOperation } from "../cancel.ts";
import { jsonResponse, RequestError } from "../http/answers.ts";
import { readChoice, readPage, readTime } from "../http/query.ts";
import { withOutput } from "../processes/folded-result.ts";
import { listOperations } from "../records/operation-list.ts";
import { describeOperation, summarizeOperation } from "../records/operations.ts";
import { requireOperation } from "../recovery.ts";
import type { Route } from "../router.ts";

export const operationRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/operations",
    answer({ state, url }) {
      const operations = listOperations(state, {
        status: readChoice(url, "status", operationStatuses),
        kind: readChoice(url, "kind", ["instance", "image_import"]),
        since: readTime(url, "since", state.clock.now()),
        until: readTime(url, "until", state.clock.now()),
        ...readPage(url),
      });
      return jsonResponse(operations.map((operation) => summarizeOperation(operation, state.clock.now())));
    },
  },
  {
    method: "GET",
    path: "/v1/operations/:uuid",
    async answer({ state, parameters }) {
      const operation = await requireOperation(state, parameters.uuid ?? "");
      const events = () => state.events.readAll(operation.uuid, state.closing);
      const result = operation.result && (await withOutput(operation.result, events));
      return jsonResponse(describeOperation({ ...operation, result }, state.clock.now()));
    },
  },
  {
    method: "DELETE",
    path: "/v1/operations/:uuid",
    async answer({ state, parameters }) {
      const operation = await requireOperation(state, parameters.uuid ?? "");
      if (operation.finishedAt !== null) {
        throw new RequestError(409, `operation ${operation.uuid} has already ended (${operation.status})`);
      }
      cancelOperation(state, operation);
      return jsonResponse({ uuid: operation.uuid }, 202);
    },
  },
];
