import type { Database } from "bun:sqlite";
import { errorCode } from "./system-error.ts";

/**
 * Has a database wait for others for so long, and keeps its changes in a write-ahead log. That the waiting time does not hold
 * for the switch to the log is SQLite's way: where several processes make it at the same moment, it fails at once for all
 * but one.
 */
export function useWriteAheadLog(database: Database, waitMilliseconds: number): void {
  database.run(`PRAGMA busy_timeout = ${waitMilliseconds}`);
  const until = performance.now() + waitMilliseconds;
  for (;;) {
    try {
      database.run("PRAGMA journal_mode = WAL");
      return;
    } catch (error) {
      if (errorCode(error) !== "SQLITE_BUSY" || performance.now() > until) throw error;
      Bun.sleepSync(pauseMilliseconds);
    }
  }
}

const pauseMilliseconds = 5;
