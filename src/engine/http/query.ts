import { RequestError } from "./answers.ts";

/** `limit` (1 to 1000, by default all of these) and `offset`. */
export function readPage(url: URL): { limit: number; offset: number } {
  return {
    limit: readNumber(url, "limit", 1, 1000) ?? 1000,
    offset: readNumber(url, "offset", 0, 2 ** 53) ?? 0,
  };
}

/** A moment as an ISO 8601 date or in seconds since the epoch; answered in milliseconds since the epoch. */
export function readMoment(url: URL, name: string): number | undefined {
  const text = url.searchParams.get(name);
  if (text === null || text === "") return undefined;
  const moment = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : Date.parse(text);
  if (Number.isNaN(moment))
    throw new RequestError(400, `${name} must be an ISO 8601 date or seconds since 1970`);
  return moment;
}

export function readText(url: URL, name: string): string | undefined {
  return url.searchParams.get(name) || undefined;
}

export function readFlag(url: URL, name: string): boolean {
  return ["1", "true", "yes"].includes((url.searchParams.get(name) ?? "").toLowerCase());
}

export function readChoice<Choice extends string>(
  url: URL,
  name: string,
  choices: readonly Choice[],
): Choice | undefined {
  const text = readText(url, name);
  if (text === undefined) return undefined;
  const choice = choices.find((candidate) => candidate === text);
  if (choice === undefined) throw new RequestError(400, `${name} must be one of ${choices.join(", ")}`);
  return choice;
}

function readNumber(url: URL, name: string, least: number, most: number): number | undefined {
  const text = readText(url, name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw new RequestError(400, `${name} must be a number from ${least} to ${most}`);
}
