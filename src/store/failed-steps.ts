import type { Database } from "bun:sqlite";

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
      return row === null ? undefined : new TextDecoder().decode(Bun.zstdDecompressSync(row.step));
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
