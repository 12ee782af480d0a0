/** The space that the history of builds takes, for the commands about the disk. */
import { messageOf } from "../../errors.ts";
import { type History, historyFileBytes, openExistingHistory } from "../../history/history-database.ts";
import type { Invocation } from "../command-line/command.ts";
import { stateDirectory } from "../process/runtime.ts";
import { listBuilds } from "../sessions/past-builds.ts";

/** Builds of the history. */
interface Builds {
  count: number;
  bytes: number;
}

/** Measures the history. `reclaimableBytes`: what builds that are gone have left in its file. */
export function historyUsage(invocation: Invocation): Builds & { reclaimableBytes: number } {
  const usage = withHistory(invocation, (history, home) => ({
    count: history.count(),
    bytes: historyFileBytes(home),
    reclaimableBytes: history.freeBytes(),
  }));
  return usage ?? { count: 0, bytes: 0, reclaimableBytes: 0 };
}

interface HistorySelection {
  all: boolean;
  /** Builds that began before this moment go. */
  before: number | undefined;
}

/** Removes builds, and gives their space back. Without `isDone` it only says what it would do. */
export function pruneHistory(
  { all, before }: HistorySelection,
  isDone: boolean,
  invocation: Invocation,
): Builds {
  const pruned = withHistory(invocation, (history, home) => {
    const isDoomed = ({ startedAt }: { startedAt: number }) =>
      all || (before !== undefined && startedAt < before);
    const doomed = listBuilds(history, home).filter((build) => build.status !== "running" && isDoomed(build));
    const ids = doomed.map(({ id }) => id);
    const planned = history.bytesOf(ids) + history.freeBytes();
    if (!isDone) return { count: ids.length, bytes: planned };
    const bytes = historyFileBytes(home);
    history.remove(ids);
    history.compact();
    return { count: ids.length, bytes: Math.max(0, bytes - historyFileBytes(home)) };
  });
  return pruned ?? { count: 0, bytes: 0 };
}

/** Returns `undefined` if there is no history, or if it can't be used: the engine's own upkeep goes on. */
function withHistory<Result>(
  { runtime, log }: Invocation,
  work: (history: History, home: string) => Result,
): Result | undefined {
  const home = stateDirectory(runtime);
  try {
    using history = openExistingHistory(home);
    return history && work(history, home);
  } catch (error) {
    log.debug(`the history of builds: ${messageOf(error)}`);
    return undefined;
  }
}
