import { parseScopeAddress } from "../../registry/github/scope-address.ts";
import { isTag } from "../../service/wire/image.ts";
import { RequestError } from "./responses.ts";

/** A JSON object of a request that has not been checked. The functions that read a field throw an error (400) with its name. */
export type RequestFields = Record<string, unknown>;

export async function readBody(request: Request): Promise<RequestFields> {
  let value: unknown;
  try {
    value = await request.json();
  } catch {
    throw new RequestError(400, "the body is not JSON");
  }
  return asFields(value, "the body");
}

export function asFields(value: unknown, name: string): RequestFields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as RequestFields;
  throw new RequestError(400, `${name} must be an object`);
}

export function readString(fields: RequestFields, name: string): string {
  return optionalString(fields, name) ?? refuse(name, "is missing");
}

export function optionalString(fields: RequestFields, name: string): string | undefined {
  const value = fields[name] ?? undefined;
  return value === undefined || typeof value === "string" ? value : refuse(name, "must be a string");
}

export function optionalBoolean(fields: RequestFields, name: string): boolean | undefined {
  const value = fields[name] ?? undefined;
  return value === undefined || typeof value === "boolean" ? value : refuse(name, "must be true or false");
}

/** Returns an integer of at least `min`. */
export function optionalNumber(fields: RequestFields, name: string, min: number): number | undefined {
  const value = fields[name] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= min) return value;
  return refuse(name, `must be a whole number of at least ${min}`);
}

export function optionalStrings(fields: RequestFields, name: string): string[] | undefined {
  const value = fields[name] ?? undefined;
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.every((item): item is string => typeof item === "string")) return value;
  return refuse(name, "must be a list of strings");
}

export function optionalFields(fields: RequestFields, name: string): RequestFields | undefined {
  const value = fields[name] ?? undefined;
  return value === undefined ? undefined : asFields(value, name);
}

/** Throws for an unknown field: a misspelt one would have no effect without any notice. */
export function refuseUnknownFields(fields: RequestFields, known: readonly string[], within?: string): void {
  const unknown = Object.keys(fields).find((name) => !known.includes(name));
  if (unknown !== undefined)
    refuse(within === undefined ? unknown : `${within}.${unknown}`, "is not a known field");
}

export function refuse(name: string, problem: string): never {
  throw new RequestError(400, `${name} ${problem}`);
}

/** Checks the address of a blob store. A server accepts only registries, since a path would be one of its own machine. */
export function requireStoreAddress(source: string, { isServer }: { isServer: boolean }): void {
  // A client of a server must not use this process's token for GitHub's cache.
  const isLocal = /^dir:\/[^\0]*$/.test(source) || parseScopeAddress(source) !== undefined;
  if (!isLocal && !/^docker:\/\/[\w.:[\]-]+(\/[\w.-]+)+$/.test(source))
    refuse("source", "must be docker://HOST/NAME, dir:/PATH or gha:SCOPE@URL");
  if (isLocal && isServer) refuse("source", "must be docker://HOST/NAME on a server");
}

/** Throws unless the text is a valid tag. */
export function requireTag(tag: string): void {
  if (isTag(tag)) return;
  throw new RequestError(
    400,
    `${JSON.stringify(tag)} is not a valid tag: expected [HOST[:PORT]/]NAME[:TAG], with capital letters only after the colon`,
  );
}

/** The filter and the page of a list. Times are milliseconds since the epoch, both inclusive. */
export interface ListFilter {
  since: number | undefined;
  until: number | undefined;
  limit: number;
  offset: number;
}

/** Reads `since`, `until`, `limit` (1 to 1000, default 1000) and `offset`. */
export function readListFilter(url: URL, now: number): ListFilter {
  return {
    since: readTime(url, "since", now),
    until: readTime(url, "until", now),
    limit: queryNumber(url, "limit", 1, 1000) ?? 1000,
    offset: queryNumber(url, "offset", 0, 2 ** 53) ?? 0,
  };
}

/**
 * Reads a time: an ISO 8601 date, seconds since the epoch, or a time before now such as `90s`, `15m`, `1h` or `2d`. Returns
 * milliseconds since the epoch.
 */
function readTime(url: URL, name: string, now: number): number | undefined {
  const text = url.searchParams.get(name);
  if (text === null || text === "") return undefined;
  const [, amount, unit] = /^(\d+(?:\.\d+)?)([smhdw]?)$/.exec(text) ?? [];
  if (amount !== undefined)
    return unit ? now - Number(amount) * unitSeconds(unit) * 1000 : Number(amount) * 1000;
  const moment = Date.parse(text);
  if (Number.isNaN(moment)) {
    const expected = "an ISO 8601 date, seconds since 1970, or a time before now such as 1h";
    throw new RequestError(400, `${name} must be ${expected}`);
  }
  return moment;
}

function unitSeconds(unit: string): number {
  return { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 }[unit] ?? 1;
}

export function queryText(url: URL, name: string): string | undefined {
  return url.searchParams.get(name) || undefined;
}

export function queryFlag(url: URL, name: string): boolean {
  return ["1", "true", "yes"].includes((url.searchParams.get(name) ?? "").toLowerCase());
}

export function queryChoice<Choice extends string>(
  url: URL,
  name: string,
  choices: readonly Choice[],
): Choice | undefined {
  const text = queryText(url, name);
  if (text === undefined) return undefined;
  const choice = choices.find((candidate) => candidate === text);
  if (choice === undefined) throw new RequestError(400, `${name} must be one of ${choices.join(", ")}`);
  return choice;
}

/** Returns all values of a parameter that may be repeated. */
export function queryTexts(url: URL, name: string): string[] {
  return url.searchParams.getAll(name).filter((text) => text !== "");
}

export function queryNumber(url: URL, name: string, least: number, most: number): number | undefined {
  const text = queryText(url, name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw new RequestError(400, `${name} must be a number from ${least} to ${most}`);
}
