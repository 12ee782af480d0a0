/** What is looked at again and again while a command runs. */
import type { LimitHit } from "../../../service/wire/operation.ts";
import type { LimitEvents } from "./controllers.ts";
import { countedSize, freeRoom } from "./counted-size.ts";
import { allProcesses, estimateBelow, exactMemory, hiddenMemory, usageBelow } from "./process-usage.ts";

export interface Watcher {
  /** Milliseconds. */
  firstWait: number;
  /** Returns the limit for which the command is to be ended, else how many milliseconds to wait for the next look. */
  look(now: number): Promise<LimitHit["limit"] | number> | LimitHit["limit"] | number;
}

const betweenLooks = 500;
/** Milliseconds in which every look finds new refusals: who goes on like that is not a build that makes do with fewer. */
const patience = 5_000;
/** A command that starts another hog after so many were ended does nothing else. */
const maxKills = 10;

/** The kernel enforces the limits itself; a command that makes nothing of it would go on until its time is over. */
export function watchEvents(read: () => LimitEvents): Watcher {
  let refused = 0;
  let since: number | undefined;
  return {
    firstWait: betweenLooks,
    look(now) {
      const { outOfMemory, outOfProcesses } = read();
      if (outOfMemory >= maxKills) return "max_memory_bytes";
      since = outOfProcesses > refused ? (since ?? now) : undefined;
      refused = outOfProcesses;
      return since !== undefined && now - since >= patience ? "max_processes" : betweenLooks;
    },
  };
}

/** Bytes a millisecond that a command may fill memory with: some 4 GiB a second, by several processors at once. */
const memorySpeed = 4 * 1024 ** 2;
const shortestWait = 20;
const maxWait = 250;
/** A look takes at most this part of the time. */
const share = 10;
/** Milliseconds between two looks at how many processes the machine has. */
const betweenHeadCounts = 50;
/** What a sample may be wrong by, in processes. */
const tolerance = 256;
/** Bytes of the machine's memory: with less left, shared memory that belongs to nobody counts as the command's. */
const littleMemory = 512 * 1024 ** 2;

/** Adds up what the processes below the helpers take, where no control group counts. */
export function watchProcesses(
  helpers: ReadonlySet<number>,
  limits: { memory: number | undefined; processes: number | undefined },
): Watcher {
  const before = hiddenMemory().hidden;
  const processesBefore = allProcesses();
  let restUntil = 0;
  /** While thousands of processes take all processors there is no time to go through them one by one. */
  const isCrowd = (limit: number) =>
    allProcesses() - processesBefore > limit + tolerance / 2 && estimateBelow(helpers) > limit + tolerance;
  return {
    firstWait: shortestWait,
    look(now) {
      if (limits.processes !== undefined && isCrowd(limits.processes)) return "max_processes";
      if (now < restUntil) return Math.min(restUntil - now, betweenHeadCounts);
      const began = performance.now();
      const { processes, resident, pids } = usageBelow(helpers);
      if (limits.processes !== undefined && processes > limits.processes) return "max_processes";
      let wait = maxWait;
      if (limits.memory !== undefined) {
        const { hidden, available } = hiddenMemory();
        const atMost = resident + Math.max(hidden - before, 0);
        if (atMost > limits.memory && (available < littleMemory || exactMemory(pids) > limits.memory))
          return "max_memory_bytes";
        wait = Math.max((limits.memory - atMost) / memorySpeed, shortestWait);
      }
      wait = Math.max(Math.min(wait, maxWait), (performance.now() - began) * share);
      restUntil = now + wait;
      return Math.min(wait, betweenHeadCounts);
    },
  };
}

/** Milliseconds between two looks at how full the disk is. */
const betweenGlances = 50;
/** Milliseconds after which all is counted, whatever the disk says: somebody else may have made room there. */
const betweenCounts = 500;
/** Counting again takes at most this part of the time. */
const countingShare = 10;

/**
 * Counts what is in the upper directory: when the disk has lost as much room as the layer may still grow by, and every
 * few seconds. One file can't grow past the limit at all (RLIMIT_FSIZE).
 */
export function watchLayer(upper: string, limit: number, signal: AbortSignal): Watcher {
  let counted = 0;
  let countedAt = Number.NEGATIVE_INFINITY;
  let restUntil = 0;
  let room = freeRoom(upper);
  return {
    firstWait: 0,
    async look(now) {
      const left = freeRoom(upper);
      const grown = room.bytes - left.bytes + 512 * Math.max(room.entries - left.entries, 0);
      const isDue = counted + grown > limit || now - countedAt >= betweenCounts;
      if (!isDue || now < restUntil) return betweenGlances;
      const began = performance.now();
      counted = await countedSize(upper, limit, signal);
      if (counted > limit) return "max_layer_bytes";
      room = left;
      countedAt = now;
      restUntil = now + (performance.now() - began) * countingShare;
      return betweenGlances;
    },
  };
}
