import { usageError } from "../../../errors.ts";

/** Returns the value of a name, with the words behind it. */
export type Expand = Readonly<Record<string, (argument: string | undefined, zone: string) => string>>;

const expression = /\{\{\{?\s*(.*?)\s*\}?\}\}/g;

/** Throws a BoughError of kind `usage` for a `{{` without its end. */
export function requireClosed(text: string, option: string): void {
  if (text.replace(expression, "").includes("{{"))
    throw usageError(`${option}: ${text} has {{ without }}`, "Write {{version}}, for example.");
}

/** Replaces `{{name}}` and `{{name 'argument' tz='Europe/Berlin'}}`. @throws BoughError of kind `usage` for unknown names */
export function expandText(text: string, names: Expand, option: string): string {
  requireClosed(text, option);
  return text.replace(expression, (whole, inside: string) => {
    const [, name = "", quoted, , zone = "UTC"] =
      /^(\w+)(?:\s+(?:'([^']*)'|"([^"]*)"))?(?:\s+tz=['"]([^'"]*)['"])?$/.exec(inside) ?? [];
    const found = Object.hasOwn(names, name) ? names[name] : undefined;
    if (found !== undefined) return found(quoted ?? /"([^"]*)"/.exec(inside)?.[1], zone);
    throw usageError(
      `${option}: ${whole} is not known here`,
      `Here are ${Object.keys(names)
        .map((each) => `{{${each}}}`)
        .join(", ")}.`,
    );
  });
}

/** Formats a time as https://momentjs.com/docs/#/displaying/format/ does, with the letters that tags use. */
export function formatTime(milliseconds: number, format: string, zone: string, option: string): string {
  let parts: Record<string, string>;
  try {
    const formatter = new Intl.DateTimeFormat("en-GB", {
      ...{ timeZone: zone, hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit" },
      ...{ hour: "2-digit", minute: "2-digit", second: "2-digit" },
    });
    parts = Object.fromEntries(formatter.formatToParts(milliseconds).map(({ type, value }) => [type, value]));
  } catch {
    throw usageError(
      `${option}: unknown time zone ${JSON.stringify(zone)}`,
      "Write one such as Europe/Berlin.",
    );
  }
  const { year = "", month = "", day = "", hour = "", minute = "", second = "" } = parts;
  const plain = (text: string) => String(Number(text));
  const letters: Readonly<Record<string, string>> = {
    ...{ YYYY: year, YY: year.slice(-2), MM: month, M: plain(month), DD: day, D: plain(day) },
    ...{ HH: hour, H: plain(hour), mm: minute, m: plain(minute), ss: second, s: plain(second) },
    X: String(Math.floor(milliseconds / 1000)),
  };
  return format.replace(/\[([^\]]*)\]|YYYY|YY|MM?|DD?|HH?|mm?|ss?|X|[A-Za-z]/g, (word, literal?: string) => {
    if (literal !== undefined) return literal;
    // What GitHub's and ISO's formats have between the date and the time.
    if (word === "T" || word === "Z") return word;
    const value = letters[word];
    if (value !== undefined) return value;
    throw usageError(
      `${option}: unknown letter ${JSON.stringify(word)} in the format ${JSON.stringify(format)}`,
      "YYYY, MM, DD, HH, mm, ss and X (seconds since 1970) are known; text is in [brackets].",
    );
  });
}
