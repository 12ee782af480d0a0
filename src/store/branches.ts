import type { Database } from "bun:sqlite";
import type { Clock } from "../clock.ts";
import type { HistoryEntry, SessionStore } from "./sessions.ts";

/** The branch that a session begins on. */
export const firstBranch = "main";

interface Branch {
  name: string;
  /** The branch's tip in the history. */
  entry: number;
  image: string;
  title: string;
  isActive: boolean;
}

/** Branches of sessions: names that move along the history. One of a session's branches is active: new work is added to it. */
export interface BranchStore {
  /** Returns `main` for a session that does not exist yet. The branch itself may be missing if nothing was done on it. */
  active(key: string): string;
  /** Returns the tip of the active branch. */
  head(key: string): HistoryEntry | undefined;
  /** Sorted by name. */
  list(key: string): Branch[];
  /** Creates the branch at, or moves it to, an entry of the same session. */
  set(key: string, branch: string, entry: number): void;
  /** Makes the branch the active one. */
  checkOut(key: string, branch: string): void;
}

export function createBranchStore(database: Database, clock: Clock, sessions: SessionStore): BranchStore {
  const active = (key: string): string =>
    database
      .query<{ active_branch: string }, [string]>("SELECT active_branch FROM session WHERE key = ?")
      .get(key)?.active_branch ?? firstBranch;

  return {
    active,

    head: (key) => sessions.findBranch(key, active(key)),

    list: (key) =>
      database
        .query<Omit<Branch, "isActive"> & { active: number }, [string]>(
          `SELECT branch.name, history.id AS entry, image, title, branch.name = session.active_branch AS active
           FROM branch JOIN history ON history.id = branch.history_id JOIN session ON session.id = branch.session_id
           WHERE session.key = ? ORDER BY branch.name`,
        )
        .all(key)
        .map(({ active: isActive, ...branch }) => ({ ...branch, isActive: isActive === 1 })),

    set(key, branch, entry) {
      const { changes } = database
        .query(
          `INSERT INTO branch (session_id, name, history_id)
           SELECT session.id, ?, history.id FROM session JOIN history ON history.session_id = session.id
           WHERE session.key = ? AND history.id = ?
           ON CONFLICT (session_id, name) DO UPDATE SET history_id = excluded.history_id`,
        )
        .run(branch, key, entry);
      if (changes === 0) throw new Error(`session ${key} has no history entry ${entry}`);
    },

    checkOut(key, branch) {
      database
        .query("UPDATE session SET active_branch = ?, updated_at = ? WHERE key = ?")
        .run(branch, clock.now(), key);
    },
  };
}
