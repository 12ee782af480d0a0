import { RequestError } from "./answers.ts";

/** Reads `limit` (1 to 1000, default 1000) and `offset`. */
export function readPage(url: URL): { limit: number; offset: number } {
  return {
    limit: readNumber(url, "limit", 1, 1000) ?? 1000,
    offset: readNumber(url, "offset", 0, 2 ** 53) ?? 0,
  };
}

/**
 * Reads a time: an ISO 8601 date, seconds since the epoch, or a time before now such as `90s`, `15m`, `1h` or `2d`. Returns
 * milliseconds since the epoch.
 */
export function readTime(url: URL, name: string, now: number): number | undefined {
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

/** Returns all values of a parameter that may be repeated. */
export function readTexts(url: URL, name: string): string[] {
  return url.searchParams.getAll(name).filter((text) => text !== "");
}

export function readNumber(url: URL, name: string, least: number, most: number): number | undefined {
  const text = readText(url, name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= least && value <= most) return value;
  throw new RequestError(400, `${name} must be a number from ${least} to ${most}`);
}
