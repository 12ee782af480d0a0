/** The engine makes room on its disk by itself: in the background, after commands that have changed something. */
import { existsSync, readFileSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Engine } from "../../engine/engine.ts";
import { bytesToKeep, diskOf, needsRoom } from "../../engine/prune/room.ts";
import type { RoomRequest } from "../../engine/prune/selection.ts";
import { BoughError, causeOf, DiskFullError, usageError } from "../../errors.ts";
import { lines, type Message, wording } from "../../messages/wording.ts";
import { stateFailure } from "../../state-failure.ts";
import type { Log } from "../../terminal/log.ts";
import { formatBytes, parseSize } from "../../terminal/quantity.ts";
import { quoted } from "../../visible.ts";
import { type Runtime, stateDirectory } from "../process/runtime.ts";
import { engineDirectory } from "./choice.ts";

/** Set for the background process, whose output nobody sees. */
const marker = "BOUGH_BACKGROUND";
const variable = "BOUGH_KEEP";
/** Measuring the engine's directory takes seconds if caches have many files. */
const minMinutesBetween = 10;

type Host = Pick<Runtime, "environment" | "platform" | "clock">;

/** What the last background process left for the next build. */
interface Note {
  /** Milliseconds since the epoch when it was started. */
  startedAt?: number;
  freedBytes?: number;
}

/**
 * Returns a function that says how many of the bytes that the engine uses may stay; `undefined` if there is room. `BOUGH_KEEP`
 * replaces the default, which depends on the disk.
 */
function roomLimit(
  { environment }: Pick<Host, "environment">,
  directory: string,
): ((usedBytes: number) => number) | undefined {
  const setting = environment[variable] ?? "";
  if (/^(off|0)$/i.test(setting)) return undefined;
  if (setting !== "") {
    const bytes = parseKept(setting, variable);
    return () => bytes;
  }
  const disk = diskOf(directory);
  return needsRoom(disk) ? (usedBytes) => bytesToKeep(disk, usedBytes) : undefined;
}

/** A session's time of use is noted once in an hour. */
const millisecondsOfUse = 2 * 3_600_000;

/** Returns what `engine prune --auto` is to do. */
export function roomRequest(runtime: Host, directory: string): RoomRequest {
  return {
    bytesToKeep: roomLimit(runtime, directory) ?? ((usedBytes) => usedBytes),
    keepsCurrentSince: runtime.clock.now() - millisecondsOfUse,
  };
}

/** Starts a background process if room may be needed, at most once in ten minutes. `options`: further ones of `engine prune`. */
export function makeRoomInBackground(
  runtime: Host & Pick<Runtime, "runInBackground">,
  directory: string,
  options: readonly string[] = [],
): void {
  try {
    if (roomLimit(runtime, directory) === undefined) return;
    const note = readNote(runtime);
    const startedAt = runtime.clock.now();
    // The clock may have been set back.
    if (Math.abs(startedAt - (note.startedAt ?? 0)) < minMinutesBetween * 60_000) return;
    writeNote(runtime, { ...note, startedAt });
    runtime.runInBackground({ [marker]: "1" }, () => [
      "--local",
      "--quiet",
      "engine",
      "prune",
      "--auto",
      "--yes",
      ...options,
    ]);
  } catch {
    // The result of the command stands. The next one tries again.
  }
}

/** Makes room for a server until the signal is aborted. Only clients know what the builds that they run may need. */
export async function makeRoomRegularly(
  runtime: Host & Pick<Runtime, "runInBackground" | "signal">,
  engine: Pick<Engine, "directory" | "hasChanged">,
): Promise<void> {
  const { clock, signal } = runtime;
  while (!signal.aborted) {
    await clock.sleep(minMinutesBetween * 60_000, signal).catch(() => undefined);
    if (!signal.aborted && engine.hasChanged)
      makeRoomInBackground(runtime, engine.directory, ["--older-than", "1h"]);
  }
}

/** Leaves the result of a background process for `reportRoom`. */
export function noteRoom(runtime: Host, freedBytes: number): void {
  if (runtime.environment[marker] === undefined || freedBytes === 0) return;
  const note = readNote(runtime);
  writeNote(runtime, { ...note, freedBytes: (note.freedBytes ?? 0) + freedBytes });
}

/**
 * Reports once what was removed in the background.
 *
 * @throws BoughError if `BOUGH_KEEP` is invalid
 */
export function reportRoom(runtime: Host, log: Pick<Log, "info">): void {
  const setting = runtime.environment[variable] ?? "";
  if (setting !== "" && !/^off$/i.test(setting)) parseKept(setting, variable);
  const { freedBytes = 0, ...rest } = readNote(runtime);
  if (freedBytes === 0) return;
  log.info(
    `made room on the disk: removed ${formatBytes(freedBytes)} of the engine's data that had not been used for the longest time; ${variable} sets how much stays (\`bough help disk\`)`,
  );
  writeNote(runtime, rest);
}

function pathOf(runtime: Host): string {
  return join(stateDirectory(runtime), "made-room.json");
}

function readNote(runtime: Host): Note {
  try {
    const { startedAt, freedBytes }: Note = JSON.parse(readFileSync(pathOf(runtime), "utf8"));
    return {
      ...(typeof startedAt === "number" ? { startedAt } : {}),
      ...(typeof freedBytes === "number" ? { freedBytes } : {}),
    };
  } catch {
    // There is none, or it is damaged.
    return {};
  }
}

function writeNote(runtime: Host, note: Note): void {
  try {
    writeFileSync(pathOf(runtime), JSON.stringify(note), { mode: 0o600 });
  } catch {
    // On a full disk making room is more important.
  }
}

/** Parses the size that an option or a variable takes. */
export function parseKept(text: string, name: string): number {
  const bytes = parseSize(text);
  if (bytes !== undefined) return bytes;
  throw usageError(
    `${name} takes a size, not ${quoted(text)}`,
    `For example ${name === "--keep" ? "--keep 10GB, or --keep 500MB" : `${name}=10GB, or ${name}=off`}.`,
  );
}

const pruneHint = wording`${{ command: "engine df" }} shows what the engine stores there, ${{ command: "engine prune" }} removes what is not needed.`;

/** Returns the free space of the embedded engine's disk, and what frees more. `written`: the fate of the data that filled it. */
export function roomHint(runtime: Runtime, written: string): Message {
  const { state, engine, areOne } = disksOf(runtime);
  return wording`There was no space left. ${written}; ${freeSpace(areOne ? state : engine)}.${wording`\n${pruneHint}`}`;
}

/** Adds that hint to an error of a full disk. `isFull`: the disk is known to be full, whatever the error says. */
export function withRoomHint(error: unknown, runtime: Runtime, written: string, isFull = false): unknown {
  if (!(error instanceof BoughError) || !(isFull || causeOf(error, DiskFullError) !== undefined))
    return error;
  const hint = roomHint(runtime, written);
  return new BoughError(error.wording, {
    kind: error.kind,
    hint: lines([error.hint, hint]),
    cause: error,
  });
}

/** Replaces the hint of an error of bough's state on a full disk. The engine may be on another one. */
export function withStateRoomHint(error: unknown, runtime: Runtime, hasEngine: boolean): unknown {
  const known = stateFailure(error) ?? error;
  if (!(known instanceof BoughError)) return error;
  const { state, areOne } = disksOf(runtime);
  const hint = `${freeSpace(state)}. The next build continues once there is more.`;
  return new BoughError(known.wording, {
    kind: known.kind,
    hint: lines([hint, hasEngine && areOne ? pruneHint : undefined]),
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
