/** Measures and prunes the history of builds, for `bough engine df` and `prune`. */
import { messageOf } from "../../errors.ts";
import { type History, historyFileBytes, openExistingHistory } from "../../history/history-database.ts";
import type { Surroundings } from "../command-line/command.ts";
import { stateDirectory } from "../process/runtime.ts";
import { listBuilds } from "../sessions/past-builds.ts";

/** A number of builds, and their size. */
interface HistoryAmount {
  count: number;
  bytes: number;
}

/** Measures the history. `reclaimableBytes`: the space of removed builds in its file. */
export function historyUsage(invocation: Surroundings): HistoryAmount & { reclaimableBytes: number } {
  const usage = withHistory(invocation, (history, home) => ({
    count: history.count(),
    bytes: historyFileBytes(home),
    reclaimableBytes: history.freeBytes(),
  }));
  return usage ?? { count: 0, bytes: 0, reclaimableBytes: 0 };
}

interface HistorySelection {
  all: boolean;
  /** Selects builds that started before this time. */
  before: number | undefined;
}

/** Removes builds, and frees their space. With `removes` false it only measures what would be removed. */
export function pruneHistory(
  { all, before }: HistorySelection,
  removes: boolean,
  invocation: Surroundings,
): HistoryAmount {
  const pruned = withHistory(invocation, (history, home) => {
    const isSelected = ({ startedAt }: { startedAt: number }) =>
      all || (before !== undefined && startedAt < before);
    const selected = listBuilds(history, home).filter(
      (build) => build.status !== "running" && isSelected(build),
    );
    const ids = selected.map(({ id }) => id);
    const planned = history.bytesOf(ids) + history.freeBytes();
    if (!removes) return { count: ids.length, bytes: planned };
    const bytes = historyFileBytes(home);
    history.remove(ids);
    history.compact();
    return { count: ids.length, bytes: Math.max(0, bytes - historyFileBytes(home)) };
  });
  return pruned ?? { count: 0, bytes: 0 };
}

/** Calls `work` with the history. Returns `undefined` if there is none or if it can't be used, which must not stop a prune. */
function withHistory<Result>(
  { runtime, log }: Surroundings,
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
