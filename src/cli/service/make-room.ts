/** The engine makes room on its disk by itself: in the background, after commands that have changed something. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Engine } from "../../engine/engine.ts";
import { bytesToKeep, diskOf, needsRoom } from "../../engine/prune/room.ts";
import type { RoomRequest } from "../../engine/prune/selection.ts";
import { usageError } from "../../errors.ts";
import type { Log } from "../../terminal/log.ts";
import { formatBytes, parseSize } from "../../terminal/quantity.ts";
import { quoted } from "../../visible.ts";
import type { Runtime } from "../process/runtime.ts";
import { stateDirectory } from "../process/runtime.ts";

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
