/** `--shard 2/10`: a part of the targets, for one of several machines. */
import { usageError } from "../../../errors.ts";
import { sha256Of } from "../../../sha256.ts";

export interface Shard {
  /** The shard, counted from 1. */
  number: number;
  count: number;
}

export function parseShard(given: string): Shard {
  const [, number = "", count = ""] = /^([1-9]\d{0,5})\/([1-9]\d{0,5})$/.exec(given) ?? [];
  if (number !== "" && Number(number) <= Number(count))
    return { number: Number(number), count: Number(count) };
  throw usageError(
    `--shard takes NUMBER/COUNT, not ${JSON.stringify(given)}`,
    "For the second of ten machines: --shard 2/10",
  );
}

/** True if the shard has the target: the same on each machine, whatever other targets there are. */
export function isInShard(name: string, { number, count }: Shard): boolean {
  // 48 bits are exact in a number, and many more than shards.
  return Number.parseInt(sha256Of(name).slice(0, 12), 16) % count === number - 1;
}
