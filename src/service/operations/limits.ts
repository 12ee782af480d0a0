/** Limits that a command hit: reads and describes them. */
import { asNumber, asRecord, asText } from "../http/json.ts";
import type { LimitHit } from "../wire/operation.ts";

const names: readonly LimitHit["limit"][] = ["max_memory_bytes", "max_processes", "max_layer_bytes"];

/** Reads `limits_hit` of an operation's result; `undefined` if it has none. */
export function readLimitHits(value: unknown): LimitHit[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value.flatMap((item): LimitHit[] => {
    const record = asRecord(item);
    const limit = names.find((name) => name === asText(record?.limit));
    const bound = asNumber(record?.value);
    return limit === undefined || bound === undefined
      ? []
      : [{ limit, value: bound, killed: record?.killed === true }];
  });
}

/** Describes the limits that a command hit and how to raise them, as a hint. `undefined` if it hit none. */
export function describeLimitHits(hits: readonly LimitHit[]): string | undefined {
  return hits.length === 0 ? undefined : hits.map(describe).join(" ");
}

function describe({ limit, value, killed }: LimitHit): string {
  switch (limit) {
    case "max_memory_bytes":
      return `Killed: out of memory (limit ${formatBinary(value)}); raise it with --memory.`;
    case "max_processes":
      return killed
        ? `Killed: too many processes (limit ${value}); raise it with --pids.`
        : `Out of processes (limit ${value}); raise it with --pids.`;
    case "max_layer_bytes":
      return `Killed: the layer grew past its limit (${formatBinary(value)}).`;
  }
}

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Formats bytes in the units that limits are given in: `64 MiB`, `1.5 GiB`. */
function formatBinary(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${Number(value.toFixed(1))} ${units[unit]}`;
}
