import { ArgumentError } from "../evaluate/eval-context.ts";
import { type HclValue, stringValue } from "../values/value.ts";
import { define, type FunctionTable, text, textIn } from "./define.ts";

export function dateFunctions(now: () => Date): FunctionTable {
  return {
    formatdate: define([text("format"), text("time")], (given) => {
      const time = parseTime(given, 1);
      return stringValue(formatDate(textIn(given[0]), time));
    }),
    timeadd: define([text("timestamp"), text("duration")], (given) => {
      const { nanoseconds, offset } = parseTime(given, 0);
      return stringValue(timeText({ nanoseconds: nanoseconds + parseDuration(textIn(given[1])), offset }));
    }),
    timestamp: define([], () =>
      stringValue(timeText({ nanoseconds: BigInt(now().getTime()) * 1_000_000n, offset: 0 })),
    ),
  };
}

/** A moment, and the offset of its zone in minutes. */
interface Time {
  nanoseconds: bigint;
  offset: number;
}

const timePattern = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))$/;

function parseTime(given: readonly HclValue[], index: number): Time {
  const written = textIn(given[index]);
  const match = timePattern.exec(written);
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = (match ?? [])
    .slice(1, 7)
    .map(Number);
  const [, , , , , , , fraction = "", sign, zoneHour = "0", zoneMinute = "0"] = match ?? [];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second);
  const isValid =
    date.getUTCMonth() === month - 1 &&
    date.getUTCDate() === day &&
    [hour < 24, minute < 60, second < 60, Number(zoneHour) < 24, Number(zoneMinute) < 60].every(Boolean);
  if (match === null || !isValid)
    throw new ArgumentError(
      index,
      `${JSON.stringify(written)} is not a time`,
      "It is written as in RFC 3339: 2026-01-31T15:04:05Z",
    );
  const offset = (Number(zoneHour) * 60 + Number(zoneMinute)) * (sign === "-" ? -1 : 1);
  const rest = BigInt(fraction.slice(0, 9).padEnd(9, "0"));
  return { nanoseconds: BigInt(date.getTime() - offset * 60_000) * 1_000_000n + rest, offset };
}

function timeText(time: Time): string {
  const date = localDate(time).toISOString();
  return `${date.slice(0, 19)}${zoneText(time, ":", "Z")}`;
}

/** Returns a date whose UTC fields are those of the time's zone. */
function localDate({ nanoseconds, offset }: Time): Date {
  const milliseconds = Number(
    (nanoseconds - (((nanoseconds % 1_000_000n) + 1_000_000n) % 1_000_000n)) / 1_000_000n,
  );
  return new Date(milliseconds + offset * 60_000);
}

function zoneText({ offset }: Time, separator: string, utc?: string): string {
  if (offset === 0 && utc !== undefined) return utc;
  const minutes = Math.abs(offset);
  return `${offset < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}${separator}${two(minutes % 60)}`;
}

const units: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1000n,
  µs: 1000n,
  μs: 1000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};

/** Parses a duration as Go has it: `1h30m`, `-1.5h`. Returns nanoseconds. */
function parseDuration(written: string): bigint {
  const [, sign, parts = ""] =
    /^([+-]?)((?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|0)$/.exec(written) ?? [];
  if (sign === undefined)
    throw new ArgumentError(
      1,
      `${JSON.stringify(written)} is not a duration`,
      'Its units are h, m, s, ms, us and ns: "1h30m"',
    );
  let sum = 0n;
  for (const [, whole = "", fraction = "", unit = ""] of parts.matchAll(/(\d*)(?:\.(\d*))?([a-zµμ]+)/g)) {
    const worth = units[unit] ?? 0n;
    sum +=
      BigInt(whole || 0) * worth +
      (BigInt(fraction.slice(0, 18) || 0) * worth) / 10n ** BigInt(Math.min(18, fraction.length));
  }
  if (sum >= 1n << 63n) throw new ArgumentError(1, `the duration ${written} is too long`);
  return sign === "-" ? -sum : sum;
}

const months = [
  "January",
  "February",
  "March",
  "April",
  "May",
  "June",
  "July",
  "August",
  "September",
  "October",
  "November",
  "December",
];
const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

const two = (value: number) => String(value).padStart(2, "0");

/** Formats a time: https://developer.hashicorp.com/terraform/language/functions/formatdate. */
function formatDate(format: string, time: Time): string {
  const date = localDate(time);
  return format.replace(
    /'((?:[^']|'')*)('?)|([a-zA-Z])\3*/g,
    (word, literal: string | undefined, close: string | undefined) => {
      if (literal === undefined) return dateWord(word, date, time);
      if (close !== "'") throw new ArgumentError(0, "a literal is not closed by '");
      return literal === "" ? "'" : literal.replaceAll("''", "'");
    },
  );
}

function dateWord(word: string, date: Date, time: Time): string {
  const month = date.getUTCMonth();
  const hour = date.getUTCHours();
  const half = hour % 12 === 0 ? 12 : hour % 12;
  const words: Readonly<Record<string, string>> = {
    YY: two(date.getUTCFullYear() % 100),
    YYYY: String(date.getUTCFullYear()).padStart(4, "0"),
    M: String(month + 1),
    MM: two(month + 1),
    MMM: months[month]?.slice(0, 3) ?? "",
    MMMM: months[month] ?? "",
    D: String(date.getUTCDate()),
    DD: two(date.getUTCDate()),
    EEE: weekdays[date.getUTCDay()]?.slice(0, 3) ?? "",
    EEEE: weekdays[date.getUTCDay()] ?? "",
    h: String(hour),
    hh: two(hour),
    H: String(half),
    HH: two(half),
    AA: hour < 12 ? "AM" : "PM",
    aa: hour < 12 ? "am" : "pm",
    m: String(date.getUTCMinutes()),
    mm: two(date.getUTCMinutes()),
    s: String(date.getUTCSeconds()),
    ss: two(date.getUTCSeconds()),
    Z: zoneText(time, ":", "Z"),
    ZZZ: zoneText(time, "", "UTC"),
    ZZZZ: zoneText(time, ""),
    ZZZZZ: zoneText(time, ":"),
  };
  const shown = Object.hasOwn(words, word) ? words[word] : undefined;
  if (shown !== undefined) return shown;
  throw new ArgumentError(
    0,
    `unknown date format ${JSON.stringify(word)}`,
    `There are: ${Object.keys(words).join(", ")}.`,
  );
}
