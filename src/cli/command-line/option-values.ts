/** Values of options that take a number, one of several words, or several values. Sizes and times have files of their own. */

import type { Clock } from "../../clock.ts";
import { usageError } from "../../errors.ts";
import { formatPlatform, machinePlatform, type Platform, parsePlatform } from "../../image/platform.ts";
import { nearest } from "../../suggest.ts";

/** Parses the value of an option that takes a positive whole number. */
export function positiveInteger(text: string, option: string, hint?: string): number;
export function positiveInteger(text: string | undefined, option: string, hint?: string): number | undefined;
export function positiveInteger(text: string | undefined, option: string, hint?: string): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw usageError(`${option} takes a positive whole number, not ${JSON.stringify(text)}`, hint);
}

/** Joins words as in `a, b or c`. */
export function listWords(words: readonly string[], conjunction = "or"): string {
  return words.length < 2 ? words.join() : `${words.slice(0, -1).join(", ")} ${conjunction} ${words.at(-1)}`;
}

/** Returns the choice that `text` names. Throws if there is none: the hint is the nearest choice, or `otherwise`. */
export function oneOf<const Choice extends string>(
  text: string,
  choices: readonly Choice[],
  option: string,
  otherwise?: string,
): Choice {
  const found = choices.find((choice) => choice === text);
  if (found !== undefined) return found;
  const guess = nearest(text, choices);
  const hint = guess === undefined ? otherwise : `Did you mean ${guess}?`;
  throw usageError(`${option} takes ${listWords(choices)}, not ${JSON.stringify(text)}`, hint);
}

/** Splits comma-separated values, of which those in double quotes may contain commas. */
export function splitCsv(text: string): string[] {
  return [...text.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? "",
  );
}

/** Splits `KEY=VALUE` or `KEY`. */
export function splitPair(text: string): [key: string, value: string | undefined] {
  const at = text.indexOf("=");
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}

const milliseconds = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** Parses a date (ISO 8601), or how long ago something was (`30m`, `24h`, `7d`), and returns it as ISO 8601. */
export function parseTime(text: string, option: string, clock: Pick<Clock, "now">): string {
  const ago = /^(\d{1,6})([smhdw])$/.exec(text);
  const unit = ago?.[2] as keyof typeof milliseconds | undefined;
  const moment =
    unit === undefined
      ? /^\d{4}-\d\d-\d\d/.test(text)
        ? Date.parse(text)
        : Number.NaN
      : clock.now() - Number(ago?.[1]) * milliseconds[unit];
  if (!Number.isNaN(moment)) return new Date(moment).toISOString();
  throw usageError(
    `${option} takes a date or an age, not ${JSON.stringify(text)}`,
    "For example 2026-01-31, 2026-01-31T12:00:00Z, 30m, 24h or 7d.",
  );
}

/** Parsers of the options that lists have in common. */
export const listParsers = (clock: Pick<Clock, "now">) => ({
  since: (text: string) => parseTime(text, "--since", clock),
  until: (text: string) => parseTime(text, "--until", clock),
  limit: (text: string) => positiveInteger(text, "--limit"),
});

/** Parses lists with commas. Like buildx, takes `local` for this machine's platform. */
export function parsePlatforms(lists: readonly string[]): Platform[] {
  const words = lists.flatMap((list) => list.split(",")).map((each) => each.trim());
  const given = words.map((each) => parsePlatform(each.toLowerCase() === "local" ? machinePlatform() : each));
  return [...new Map(given.map((platform) => [formatPlatform(platform), platform])).values()];
}
