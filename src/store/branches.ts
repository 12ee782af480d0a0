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
  /** Returns the active branch, `main` for a session that does not exist yet. The branch has no entry before the first work on it. */
  active(key: string): string;
  /** Returns the tip of the active branch. */
  head(key: string): HistoryEntry | undefined;
  /** Returns a session's branches, sorted by name. */
  list(key: string): Branch[];
  /** Returns the branches of all sessions whose tip is the image. */
  ofImage(image: string): { session: string; branch: string }[];
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

    ofImage: (image) =>
      database
        .query<{ session: string; branch: string }, [string]>(
          `SELECT session.key AS session, branch.name AS branch
           FROM history JOIN branch ON branch.history_id = history.id JOIN session ON session.id = history.session_id
           WHERE history.image = ? ORDER BY session.key, branch.name`,
        )
        .all(image),

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

/** The step at which a session's latest build failed, for later inspection. */
export interface FailedStepStore {
  /** Returns the stored text. */
  get(session: string): string | undefined;
  /** Returns the session whose build was the last to fail at a step. */
  latestSession(): string | undefined;
  /** Replaces the session's step. Stores nothing for a session that does not exist. */
  set(session: string, step: string): void;
  delete(session: string): void;
}

export function createFailedStepStore(database: Database): FailedStepStore {
  return {
    get(session) {
      const row = database
        .query<{ step: Uint8Array }, [string]>(
          `SELECT step FROM failed_step JOIN session ON session.id = failed_step.session_id WHERE key = ?`,
        )
        .get(session);
      return row === null ? undefined : Bun.zstdDecompressSync(row.step).toString();
    },
    latestSession() {
      const row = database
        .query<{ key: string }, []>(
          `SELECT key FROM failed_step JOIN session ON session.id = failed_step.session_id
            ORDER BY updated_at DESC, session.id DESC LIMIT 1`,
        )
        .get();
      return row?.key;
    },
    set(session, step) {
      database
        .query(
          `INSERT OR REPLACE INTO failed_step (session_id, step) SELECT id, ? FROM session WHERE key = ?`,
        )
        .run(Bun.zstdCompressSync(step), session);
    },
    delete(session) {
      database
        .query(`DELETE FROM failed_step WHERE session_id = (SELECT id FROM session WHERE key = ?)`)
        .run(session);
    },
  };
}
