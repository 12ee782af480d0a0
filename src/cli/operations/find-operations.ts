import { BoughError } from "../../errors.ts";
import type { Service } from "../../service/client.ts";
import type { OperationFilter, OperationSummary } from "../../service/operations/operation-records.ts";
import { activeStatuses, type OperationStatus } from "../../service/wire/operation.ts";

/**
 * Returns operations, the newest first. Sends one request for each status, because a long list of ended operations may come
 * before one that still runs. `statuses`: all if not given.
 */
export async function findOperations(
  service: Service,
  filter: OperationFilter,
  statuses: readonly OperationStatus[] | undefined,
): Promise<OperationSummary[]> {
  const filters = statuses === undefined ? [filter] : statuses.map((status) => ({ ...filter, status }));
  const lists = await Promise.all(filters.map((each) => service.listOperations(each)));
  if (service.capabilities.lacks("operationList"))
    throw new BoughError(`${service.address} does not support listing operations`);
  return lists
    .flat()
    .sort((a, b) => ((a.createdAt ?? "") < (b.createdAt ?? "") ? 1 : -1))
    .slice(0, filter.limit);
}

/** Maximum of operations that run at once. */
const maxActive = 1000;

/** Returns all operations that are under way. */
export function findActive(service: Service): Promise<OperationSummary[]> {
  return findOperations(service, { limit: maxActive }, activeStatuses);
}
