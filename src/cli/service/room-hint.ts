import { existsSync, statfsSync, statSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { stateFailure } from "../../state-failure.ts";
import { formatBytes } from "../../terminal/quantity.ts";
import type { Runtime } from "../process/runtime.ts";
import { stateDirectory } from "../process/runtime.ts";
import { engineDirectory } from "./choice.ts";

const pruneHint =
  "`bough engine df` shows what the engine stores there, `bough engine prune` removes what is not needed.";

/** Returns the free space of the embedded engine's disk, and what frees more. `written`: the fate of the data that filled it. */
export function roomHint(runtime: Runtime, written: string): string {
  const { state, engine, areOne } = disksOf(runtime);
  return `There was no space left. ${written}; ${freeSpace(areOne ? state : engine)}.\n${pruneHint}`;
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

/** Replaces the hint of an error of bough's state on a full disk. The engine may be on another one. */
export function withStateRoomHint(error: unknown, runtime: Runtime, hasEngine: boolean): unknown {
  const known = stateFailure(error) ?? error;
  if (!(known instanceof BoughError)) return error;
  const { state, areOne } = disksOf(runtime);
  const hint = `${freeSpace(state)}. The next build continues once there is more.`;
  return new BoughError(known.message, {
    kind: known.kind,
    hint: hasEngine && areOne ? `${hint}\n${pruneHint}` : hint,
    cause: error,
  });
}

function freeSpace(directory: string): string {
  const { bavail, bsize } = statfsSync(directory);
  return `${formatBytes(bavail * bsize)} are free on the disk of ${directory}`;
}

function disksOf(runtime: Runtime): { state: string; engine: string; areOne: boolean } {
  const state = stateDirectory(runtime);
  const engine = engineDirectory(runtime);
  return { state, engine, areOne: !existsSync(engine) || statSync(engine).dev === statSync(state).dev };
}
