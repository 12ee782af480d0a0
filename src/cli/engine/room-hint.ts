import { statfsSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { formatBytes } from "../../terminal/quantity.ts";
import type { Runtime } from "../process/runtime.ts";
import { stateDirectory } from "../process/state-directory.ts";

/** Says how much room the embedded engine's disk has, and what frees some. `written`: what has become of what filled it. */
export function roomHint(runtime: Runtime, written: string): string {
  const directory = stateDirectory(runtime);
  const { bavail, bsize } = statfsSync(directory);
  return [
    `There was no space left. ${written}; ${formatBytes(bavail * bsize)} are free where ${directory} is.`,
    "`bough engine df` shows what the engine keeps there, `bough engine prune` frees what nothing needs.",
  ].join("\n");
}

/** Adds that to an error of a full disk. `isFull`: it is known to be one, whatever its message says. */
export function withRoomHint(error: unknown, runtime: Runtime, written: string, isFull = false): unknown {
  if (!(error instanceof BoughError) || !(isFull || /no space left/i.test(error.message))) return error;
  const hint = roomHint(runtime, written);
  return new BoughError(error.message, {
    kind: error.kind,
    hint: error.hint === undefined ? hint : `${error.hint}\n${hint}`,
    cause: error,
  });
}
