/** Go's `time.Time`, as far as templates use it. */
import { requireText } from "./functions.ts";
import { GoText } from "./values.ts";

/** Reads a time in RFC 3339. `undefined`: it is none. */
export function goTime(text: string): GoText | undefined {
  const [, local, fraction = "", zone] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(text.toUpperCase()) ?? [];
  if (local === undefined || zone === undefined) return undefined;
  const moment = Date.parse(`${local}${zone}`);
  // The parts of the local time, as if it were that of UTC.
  const parts = new Date(`${local}Z`);
  if (Number.isNaN(moment) || Number.isNaN(parts.getTime())) return undefined;
  const offset = zone === "Z" ? "+0000" : zone.replace(":", "");
  const digits = fraction.replace(/0+$/, "");
  const dotted = digits === "" ? "" : `.${digits}`;
  const shown = `${local.replace("T", " ")}${dotted} ${offset} ${zone === "Z" ? "UTC" : offset}`;
  return new GoText(shown, {
    type: "time.Time",
    json: `${local}${dotted}${zone}`,
    methods: {
      String: () => shown,
      Unix: () => BigInt(Math.floor(moment / 1000)),
      Format: (layout = "") => format(requireText(layout), { parts, fraction, zone }),
    },
  });
}

const month = new Intl.DateTimeFormat("en-US", { month: "long", timeZone: "UTC" });
const weekday = new Intl.DateTimeFormat("en-US", { weekday: "long", timeZone: "UTC" });
const layoutParts =
  /January|Jan|Monday|Mon|MST|2006|Z07:00|-07:00|Z0700|-0700|002|01|02|03|04|05|06|15|_2|PM|pm|[.,]0+(?!\d)|[.,]9+(?!\d)|[12345]/g;

/** Formats a time by a layout, which is how Go would write 15:04:05 on Monday, January 2, 2006. */
function format(
  layout: string,
  { parts, fraction, zone }: { parts: Date; fraction: string; zone: string },
): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const [year, day, hour] = [parts.getUTCFullYear(), parts.getUTCDate(), parts.getUTCHours()];
  const dayOfYear = Math.floor((parts.getTime() - Date.UTC(year, 0, 1)) / 86_400_000) + 1;
  const offset = zone === "Z" ? "+00:00" : zone;
  const values: Readonly<Record<string, string>> = {
    ...{ January: month.format(parts), Jan: month.format(parts).slice(0, 3) },
    ...{ Monday: weekday.format(parts), Mon: weekday.format(parts).slice(0, 3) },
    ...{ "2006": String(year).padStart(4, "0"), "06": two(year % 100) },
    ...{ "01": two(parts.getUTCMonth() + 1), "1": String(parts.getUTCMonth() + 1) },
    ...{
      "02": two(day),
      "2": String(day),
      _2: String(day).padStart(2),
      "002": String(dayOfYear).padStart(3, "0"),
    },
    ...{ "15": two(hour), "03": two(hour % 12 || 12), "3": String(hour % 12 || 12) },
    ...{ PM: hour < 12 ? "AM" : "PM", pm: hour < 12 ? "am" : "pm" },
    ...{ "04": two(parts.getUTCMinutes()), "4": String(parts.getUTCMinutes()) },
    ...{ "05": two(parts.getUTCSeconds()), "5": String(parts.getUTCSeconds()) },
    ...{ MST: zone === "Z" ? "UTC" : offset.replace(":", ""), "Z07:00": zone, Z0700: zone.replace(":", "") },
    ...{ "-07:00": offset, "-0700": offset.replace(":", "") },
  };
  return layout.replace(layoutParts, (part) => {
    const known = values[part];
    if (known !== undefined) return known;
    const digits = fraction.padEnd(part.length - 1, "0").slice(0, part.length - 1);
    const kept = part.includes("9") ? digits.replace(/0+$/, "") : digits;
    return kept === "" ? "" : `${part[0]}${kept}`;
  });
}
