/** Periodic checks while a command runs. */

import { lstatSync, type Stats, statfsSync } from "node:fs";
import { join } from "node:path";
import { createPace } from "../../../pace.ts";
import { listNames } from "../../../remove-tree.ts";
import type { LimitHit } from "../../../service/wire/operation.ts";
import { errorCode } from "../../../system-error.ts";
import type { LimitEvents } from "./controllers.ts";
import { allProcesses, estimateBelow, exactMemory, hiddenMemory, usageBelow } from "./usage.ts";

export interface Watcher {
  /** The time until the first check. */
  firstMilliseconds: number;
  /** Returns the limit for which the command must end, or else the milliseconds until the next check. */
  check(now: number): Promise<LimitHit["limit"] | number> | LimitHit["limit"] | number;
}

const eventCheckMilliseconds = 500;
/** The time in which every check finds new refusals: a build that can do with fewer processes would have stopped trying. */
const maxRefusalMilliseconds = 5_000;
/** The number of kills after which a command is ended: it does nothing else than start processes that are killed. */
const maxKills = 10;

/** Watches limits that the kernel enforces. Otherwise a command that ignores refusals would run until its timeout. */
export function watchEvents(read: () => LimitEvents): Watcher {
  let refused = 0;
  let since: number | undefined;
  return {
    firstMilliseconds: eventCheckMilliseconds,
    check(now) {
      const { outOfMemory, outOfProcesses } = read();
      if (outOfMemory >= maxKills) return "max_memory_bytes";
      since = outOfProcesses > refused ? (since ?? now) : undefined;
      refused = outOfProcesses;
      return since !== undefined && now - since >= maxRefusalMilliseconds
        ? "max_processes"
        : eventCheckMilliseconds;
    },
  };
}

/** The speed at which a command may fill memory: some 4 GiB a second, on several processors. */
const bytesPerMillisecond = 4 * 1024 ** 2;
const minWaitMilliseconds = 20;
const maxWaitMilliseconds = 250;
/** A check takes at most one part in this many of the time. */
const checkingShare = 10;
/** The time between two counts of the machine's processes. */
const processCheckMilliseconds = 50;
/** The possible error of a sample, in processes. */
const tolerance = 256;
/** If less of the machine's memory is available, shared memory that belongs to no process counts as the command's. */
const littleMemory = 512 * 1024 ** 2;

/** Adds up the usage of the processes below the helpers, where no control group counts it. */
export function watchProcesses(
  helpers: ReadonlySet<number>,
  limits: { memory: number | undefined; processes: number | undefined },
): Watcher {
  const before = hiddenMemory().hidden;
  const processesBefore = allProcesses();
  let restUntil = 0;
  /** Estimates the number: while thousands of processes use all processors, there is no time to read each. */
  const exceedsByFar = (limit: number) =>
    allProcesses() - processesBefore > limit + tolerance / 2 && estimateBelow(helpers) > limit + tolerance;
  return {
    firstMilliseconds: minWaitMilliseconds,
    check(now) {
      if (limits.processes !== undefined && exceedsByFar(limits.processes)) return "max_processes";
      if (now < restUntil) return Math.min(restUntil - now, processCheckMilliseconds);
      const began = performance.now();
      const { processes, resident, pids } = usageBelow(helpers);
      if (limits.processes !== undefined && processes > limits.processes) return "max_processes";
      let wait = maxWaitMilliseconds;
      if (limits.memory !== undefined) {
        const { hidden, available } = hiddenMemory();
        const atMost = resident + Math.max(hidden - before, 0);
        if (atMost > limits.memory && (available < littleMemory || exactMemory(pids) > limits.memory))
          return "max_memory_bytes";
        wait = Math.max((limits.memory - atMost) / bytesPerMillisecond, minWaitMilliseconds);
      }
      wait = Math.max(Math.min(wait, maxWaitMilliseconds), (performance.now() - began) * checkingShare);
      restUntil = now + wait;
      return Math.min(wait, processCheckMilliseconds);
    },
  };
}

/** The time between two checks of the free disk space. */
const diskCheckMilliseconds = 50;
/** The time after which everything is counted, whatever the free space: another program may have freed some. */
const countMilliseconds = 500;
/** Counting takes at most one part in this many of the time. */
const countingShare = 10;

/**
 * Counts the upper directory's size when the disk has lost as much space as the layer may still grow by, and every 500 ms. No
 * single file can grow past the limit (RLIMIT_FSIZE).
 */
export function watchLayer(upper: string, limit: number, signal: AbortSignal): Watcher {
  let counted = 0;
  let countedAt = Number.NEGATIVE_INFINITY;
  let restUntil = 0;
  let room = freeRoom(upper);
  return {
    firstMilliseconds: 0,
    async check(now) {
      const left = freeRoom(upper);
      const grown = room.bytes - left.bytes + 512 * Math.max(room.entries - left.entries, 0);
      const isDue = counted + grown > limit || now - countedAt >= countMilliseconds;
      if (!isDue || now < restUntil) return diskCheckMilliseconds;
      const began = performance.now();
      counted = await countedSize(upper, limit, signal);
      if (counted > limit) return "max_layer_bytes";
      room = left;
      countedAt = now;
      restUntil = now + (performance.now() - began) * countingShare;
      return diskCheckMilliseconds;
    },
  };
}

/** The bytes that count for each entry in addition to its content: the size of its header in a layer's archive. */
const entryBytes = 512;

/**
 * Returns the size that a layer's limit is compared with: the disk space of its files, and 512 bytes for each entry. Stops
 * counting above `enough`. Rejects once the signal is aborted.
 */
export async function countedSize(upper: string, enough: number, signal?: AbortSignal): Promise<number> {
  const pace = createPace(signal);
  const seen = new Set<string>();
  const waiting = [upper];
  let bytes = 0;
  for (let next = waiting.pop(); next !== undefined && bytes <= enough; next = waiting.pop()) {
    // The command may remove a directory at any time.
    for (const name of listNames(next)) {
      if (bytes > enough) break;
      const pause = pace.step();
      if (pause !== undefined) await pause;
      const path = join(next, name);
      const stats = statsOf(path);
      if (stats === "gone") continue;
      if (stats === "out of reach") return Number.POSITIVE_INFINITY;
      bytes += entryBytes;
      if (stats.isDirectory()) waiting.push(path);
      else if (stats.nlink === 1) bytes += stats.blocks * 512;
      else if (!seen.has(`${stats.ino}`)) {
        seen.add(`${stats.ino}`);
        bytes += stats.blocks * 512;
      }
    }
  }
  return bytes;
}

/** Returns the free bytes on a directory's file system, and how many more entries it can have. */
function freeRoom(directory: string): { bytes: number; entries: number } {
  const { bfree, bsize, ffree } = statfsSync(directory);
  return { bytes: bfree * bsize, entries: ffree };
}

/** Calls lstat(2). An entry whose path is too long for it could have any size. */
function statsOf(path: string): Stats | "gone" | "out of reach" {
  try {
    return lstatSync(path);
  } catch (error) {
    return errorCode(error) === "ENAMETOOLONG" ? "out of reach" : "gone";
  }
}
