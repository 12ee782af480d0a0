/** Addresses of a service's operations. */
import type { Answer } from "../http/answer.ts";
import type { RequestParts } from "../http/exchange.ts";
import { asId, asRecord, idIn } from "../http/json.ts";

type Address = Pick<RequestParts, "path" | "query">;

export interface OperationAddresses {
  /**
   * Returns the id of the operation in a response to a request of this path, and remembers its address. `undefined` if there is
   * none.
   */
  read(answer: Answer, path: string): string | undefined;
  addressOf(operation: string): Address;
  /** Returns the address of its events. */
  eventsOf(operation: string): Address;
}

/** `base`: the service's address. */
export function createOperationAddresses(base: URL): OperationAddresses {
  const elsewhere = new Map<string, Address>();
  const addressOf = (operation: string): Address =>
    elsewhere.get(operation) ?? { path: usualPath(operation) };
  return {
    read(answer, path) {
      const address = addressIn(answer, base, path);
      const last = address?.path.split("/").findLast((name) => name !== "");
      const operation = operationIn(answer) ?? asId(last === undefined ? undefined : decode(last));
      if (operation === undefined) return undefined;
      // The record's own id may differ from the last part of its address.
      if (address !== undefined && address.path !== usualPath(operation)) elsewhere.set(operation, address);
      return operation;
    },
    addressOf,
    eventsOf(operation) {
      const { path, query } = addressOf(operation);
      return { path: `${path.replace(/\/+$/, "")}/events`, ...(query === undefined ? {} : { query }) };
    },
  };
}

function usualPath(operation: string): string {
  return `/v1/operations/${encodeURIComponent(operation)}`;
}

function operationIn({ body }: Answer): string | undefined {
  const record = asRecord(body);
  return idIn(record) ?? idIn({ uuid: record?.operation_uuid, id: record?.operation_id });
}

/**
 * Reads `Location`: absolute or relative, with the base address's prefix or without. Of another origin only the path is used: the
 * token is not sent there, and a service behind a proxy does not know its public address.
 */
function addressIn({ headers }: Answer, base: URL, requested: string): Address | undefined {
  const location = headers.get("location");
  const prefix = base.pathname.replace(/\/+$/, "");
  // Some services mean `operations/ID` from `/v1/`, whatever was requested; `../operations/ID` is relative to the request.
  const from = new URL(
    `${base.origin}${prefix}${location?.startsWith("..") === true ? requested : "/v1/instances"}`,
  );
  if (location === null || !URL.canParse(location, from.href)) return undefined;
  const { pathname, searchParams } = new URL(location, from.href);
  const path = pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : pathname;
  return searchParams.size === 0 ? { path } : { path, query: Object.fromEntries(searchParams) };
}

function decode(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
