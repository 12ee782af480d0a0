/** Frees space on the engine's disk: in the background, after commands that have changed the engine's data. */
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

/** The variable that is set for the background process, whose output nobody sees. */
const backgroundVariable = "BOUGH_BACKGROUND";
const keepVariable = "BOUGH_KEEP";
/** The minimum time between background processes: measuring the engine's directory takes seconds if caches have many files. */
const minMinutesBetween = 10;

type RoomRuntime = Pick<Runtime, "environment" | "platform" | "clock">;

/** The file by which a background process reports to the next build. */
interface RoomRecord {
  /** Milliseconds since the epoch when it was started. */
  startedAt?: number;
  freedBytes?: number;
}

/**
 * Returns a function that computes how many of the bytes that the engine uses may stay; `undefined` if the disk has room. `BOUGH_KEEP`
 * replaces the default, which depends on the disk.
 */
function roomLimit(
  { environment }: Pick<RoomRuntime, "environment">,
  directory: string,
): ((usedBytes: number) => number) | undefined {
  const setting = environment[keepVariable] ?? "";
  if (/^(off|0)$/i.test(setting)) return undefined;
  if (setting !== "") {
    const bytes = parseKeepSize(setting, keepVariable);
    return () => bytes;
  }
  const disk = diskOf(directory);
  return needsRoom(disk) ? (usedBytes) => bytesToKeep(disk, usedBytes) : undefined;
}

/** The time for which a session counts as being used. Its last use is recorded only once an hour. */
const useMilliseconds = 2 * 3_600_000;

/** Returns the request of `engine prune --auto`. */
export function roomRequest(runtime: RoomRuntime, directory: string): RoomRequest {
  return {
    bytesToKeep: roomLimit(runtime, directory) ?? ((usedBytes) => usedBytes),
    keepsCurrentSince: runtime.clock.now() - useMilliseconds,
  };
}

/** Starts a background process if room may be needed, at most once in ten minutes. `options`: further options of `engine prune`. */
export function makeRoomInBackground(
  runtime: RoomRuntime & Pick<Runtime, "runInBackground">,
  directory: string,
  options: readonly string[] = [],
): void {
  try {
    if (roomLimit(runtime, directory) === undefined) return;
    const note = readRecord(runtime);
    const startedAt = runtime.clock.now();
    // The clock may have been set back.
    if (Math.abs(startedAt - (note.startedAt ?? 0)) < minMinutesBetween * 60_000) return;
    writeRecord(runtime, { ...note, startedAt });
    runtime.runInBackground({ [backgroundVariable]: "1" }, () => [
      "--local",
      "--quiet",
      "engine",
      "prune",
      "--auto",
      "--yes",
      ...options,
    ]);
  } catch {
    // A failure does not change the result of the command. The next command tries again.
  }
}

/** Makes room for a server until the signal is aborted. It removes nothing from the last hour, which running builds of clients may need. */
export async function makeRoomRegularly(
  runtime: RoomRuntime & Pick<Runtime, "runInBackground" | "signal">,
  engine: Pick<Engine, "directory" | "hasChanged">,
): Promise<void> {
  const { clock, signal } = runtime;
  while (!signal.aborted) {
    await clock.sleep(minMinutesBetween * 60_000, signal).catch(() => undefined);
    if (!signal.aborted && engine.hasChanged)
      makeRoomInBackground(runtime, engine.directory, ["--older-than", "1h"]);
  }
}

/** Records the bytes that a background process has freed, for `reportRoom`. */
export function recordFreedBytes(runtime: RoomRuntime, freedBytes: number): void {
  if (runtime.environment[backgroundVariable] === undefined || freedBytes === 0) return;
  const note = readRecord(runtime);
  writeRecord(runtime, { ...note, freedBytes: (note.freedBytes ?? 0) + freedBytes });
}

/**
 * Reports how much was removed in the background, once.
 *
 * @throws BoughError if `BOUGH_KEEP` is invalid
 */
export function reportRoom(runtime: RoomRuntime, log: Pick<Log, "info">): void {
  const setting = runtime.environment[keepVariable] ?? "";
  if (setting !== "" && !/^off$/i.test(setting)) parseKeepSize(setting, keepVariable);
  const { freedBytes = 0, ...rest } = readRecord(runtime);
  if (freedBytes === 0) return;
  log.info(
    `made room on the disk: removed ${formatBytes(freedBytes)} of the engine's data that had not been used for the longest time; ${keepVariable} sets how much stays (\`bough help disk\`)`,
  );
  writeRecord(runtime, rest);
}

function recordPath(runtime: RoomRuntime): string {
  return join(stateDirectory(runtime), "made-room.json");
}

function readRecord(runtime: RoomRuntime): RoomRecord {
  try {
    const { startedAt, freedBytes }: RoomRecord = JSON.parse(readFileSync(recordPath(runtime), "utf8"));
    return {
      ...(typeof startedAt === "number" ? { startedAt } : {}),
      ...(typeof freedBytes === "number" ? { freedBytes } : {}),
    };
  } catch {
    // The file does not exist, or is damaged.
    return {};
  }
}

function writeRecord(runtime: RoomRuntime, note: RoomRecord): void {
  try {
    writeFileSync(recordPath(runtime), JSON.stringify(note), { mode: 0o600 });
  } catch {
    // On a full disk, freeing space is more important than the record.
  }
}

/** Parses a size as the value of the option or the variable `name`. */
export function parseKeepSize(text: string, name: string): number {
  const bytes = parseSize(text);
  if (bytes !== undefined) return bytes;
  throw usageError(
    `${name} takes a size, not ${quoted(text)}`,
    `For example ${name.startsWith("--") ? `${name} 10GB, or ${name} 500MB` : `${name}=10GB, or ${name}=off`}.`,
  );
}

const pruneHint = wording`${{ command: "engine df" }} shows what the engine stores there, ${{ command: "engine prune" }} removes what is not needed.`;

/** Returns a hint with the free space of the embedded engine's disk and the commands that free more. `written`: the fate of the last data. */
export function roomHint(runtime: Runtime, written: string): Message {
  const { state, engine, areOne } = disksOf(runtime);
  return wording`There was no space left. ${written}; ${freeSpace(areOne ? state : engine)}.${wording`\n${pruneHint}`}`;
}

/** Adds that hint to an error of a full disk. `isFull`: true if the disk is known to be full, whatever the error is. */
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

/** Replaces the hint of an error of bough's state on a full disk. The engine may be on another disk. */
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
