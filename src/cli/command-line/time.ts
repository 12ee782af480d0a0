import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";

const milliseconds = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;

/** Parses a date (ISO 8601), or how long ago something was (`30m`, `24h`, `7d`), and returns it as ISO 8601. */
export function parseTime(
  text: string | undefined,
  option: string,
  clock: Pick<Clock, "now">,
): string | undefined {
  if (text === undefined) return undefined;
  const ago = /^(\d{1,6})([smhdw])$/.exec(text);
  const unit = ago?.[2] as keyof typeof milliseconds | undefined;
  const moment =
    unit === undefined
      ? /^\d{4}-\d\d-\d\d/.test(text)
        ? Date.parse(text)
        : Number.NaN
      : clock.now() - Number(ago?.[1]) * milliseconds[unit];
  if (!Number.isNaN(moment)) return new Date(moment).toISOString();
  throw new BoughError(`${option} takes a date or an age, not ${JSON.stringify(text)}`, {
    kind: "usage",
    hint: "For example 2026-01-31, 2026-01-31T12:00:00Z, 30m, 24h or 7d.",
  });
}
