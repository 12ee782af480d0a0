/** Reads the response to a request that starts an operation. */
import { asText, type JsonRecord } from "../../http/json.ts";
import { findAll, objectIn, readId } from "./fields.ts";
import { newOperation, operationLink } from "./tables.ts";

/** Returns the ids that may be the operation's, the likely ones first. */
export function operationIdsIn(body: unknown): string[] {
  if (typeof body === "string") return [readId(body) ?? []].flat();
  return findAll(body, newOperation, readId);
}

/** Returns the addresses in a response that may be those of the operation's record. */
export function operationLinksIn(body: unknown): string[] {
  return findAll(body, operationLink, readLink);
}

function readLink(value: unknown): string | undefined {
  const text = asText(value) ?? asText((objectIn(value) as JsonRecord | undefined)?.href);
  return text !== undefined && /^(https?:\/\/|\/)/.test(text) ? text : undefined;
}
