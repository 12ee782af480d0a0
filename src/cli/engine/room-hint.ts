import { statfsSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { formatBytes } from "../../terminal/quantity.ts";
import type { Runtime } from "../process/runtime.ts";
import { stateDirectory } from "../process/state-directory.ts";

/** Returns the free space of the embedded engine's disk, and what frees more. `written`: the fate of the data that filled it. */
export function roomHint(runtime: Runtime, written: string): string {
  const directory = stateDirectory(runtime);
  const { bavail, bsize } = statfsSync(directory);
  return [
    `There was no space left. ${written}; ${formatBytes(bavail * bsize)} are free on the disk of ${directory}.`,
    "`bough engine df` shows what the engine stores there, `bough engine prune` removes what is not needed.",
  ].join("\n");
}

/** Adds that hint to an error of a full disk. `isFull`: the disk is known to be full, whatever the message says. */
export function withRoomHint(error: unknown, runtime: Runtime, written: string, isFull = false): unknown {
  if (!(error instanceof BoughError) || !(isFull || /no space left/i.test(error.message))) return error;
  const hint = roomHint(runtime, written);
  return new BoughError(error.message, {
    kind: error.kind,
    hint: error.hint === undefined ? hint : `${error.hint}\n${hint}`,
    cause: error,
  });
}
