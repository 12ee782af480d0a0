/** Formats a count: `1 file`, `2 files`. */
export function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** Describes uploaded files that the service no longer has. */
export function describeGone(files: number): string {
  return `${formatCount(files, "uploaded file")} ${files === 1 ? "is" : "are"} gone`;
}

const units = ["B", "kB", "MB", "GB", "TB"];

/** Formats bytes: `812 B`, `1.5 kB`, `12 MB`, with decimal units and about two significant digits. */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** Formats progress: `300 kB of 1.2 MB (25%)`. `done` may exceed an estimated total. */
export function formatPart(done: number, total: number): string {
  const part = Math.min(done, total);
  const percent = total === 0 ? "" : ` (${Math.floor((part / total) * 100)}%)`;
  return `${formatBytes(part)} of ${formatBytes(total)}${percent}`;
}

/** Formats a duration: `0.04 s`, `12.3 s`, `2 min 5 s`, `1 h 2 min`. */
export function formatDuration(seconds: number): string {
  if (seconds < 0.995) return `${seconds.toFixed(2)} s`;
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

const ages = [
  [60, 1, "s"],
  [3600, 60, "min"],
  [48 * 3600, 3600, "h"],
  [60 * 86_400, 86_400, "d"],
  [730 * 86_400, 30 * 86_400, "months"],
  [Number.POSITIVE_INFINITY, 365 * 86_400, "years"],
] as const;

/** Formats an age: `42 s ago`, `3 h ago`, `12 d ago`, `4 months ago`. A time in the future, by another clock, counts as now. */
export function formatAge(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds / 1000);
  const [, unit, name] = ages.find(([until]) => seconds < until) ?? ages[5];
  return `${Math.floor(seconds / unit)} ${name} ago`;
}

/** Describes output that was cut off: its end is missing, which often has the error. */
export function describeTruncation(stream: string, bytes: number): string {
  const kept = formatBytes(bytes);
  return `${stream} was truncated after ${kept}: the rest is missing, including any error at its end. The command can write it to a file instead`;
}

/** Parses `10GB`, `1.5G` or `512MiB`. Units are powers of 1000, as in bough's output; with an i, of 1024. */
export function parseSize(text: string): number | undefined {
  const [, digits, unit = "", binary] = /^(\d{1,12}(?:\.\d{1,6})?)\s*([kmgt]?)(i?)b?$/i.exec(text) ?? [];
  if (digits === undefined) return undefined;
  return Number(digits) * (binary === "" ? 1000 : 1024) ** (sizeUnits[unit.toLowerCase()] ?? 0);
}

const sizeUnits: Readonly<Record<string, number>> = { k: 1, m: 2, g: 3, t: 4 };
