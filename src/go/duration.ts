/** Nanoseconds of each unit of Go's durations. */
const units: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  μs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 6e10,
  h: 3.6e12,
};

const part = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/;
const whole = new RegExp(`^[-+]?(0|(${part.source})+)$`);
const parts = new RegExp(part.source, "g");

/** Reads a duration in Go's notation, such as `1h30m`, in nanoseconds. https://pkg.go.dev/time#ParseDuration */
export function parseGoDuration(text: string): number | undefined {
  if (!whole.test(text)) return undefined;
  const nanoseconds = text
    .matchAll(parts)
    .reduce((sum, [, count, unit = ""]) => sum + Number(count) * (units[unit] ?? 0), 0);
  return Math.round(text.startsWith("-") ? 0 - nanoseconds : nanoseconds);
}

/** Formats a duration as Go does: `1m30s`, `1.5s`, `250ms`. */
export function formatGoDuration(nanoseconds: number): string {
  if (nanoseconds === 0) return "0s";
  const unit = (
    [
      ["ns", 1],
      ["µs", 1e3],
      ["ms", 1e6],
    ] as const
  ).findLast(([, size]) => nanoseconds >= size);
  if (nanoseconds < 1e9) return `${nanoseconds / (unit?.[1] ?? 1)}${unit?.[0] ?? "ns"}`;
  const seconds = nanoseconds / 1e9;
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  const rest = `${Number((seconds % 60).toFixed(9))}s`;
  return hours > 0 ? `${hours}h${minutes}m${rest}` : minutes > 0 ? `${minutes}m${rest}` : rest;
}
