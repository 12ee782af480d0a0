import type { Database } from "bun:sqlite";

/** The working directory and the variables of commands in a session's image. */
interface SessionSurroundings {
  /** Absolute; `undefined` for the image's own. */
  directory: string | undefined;
  variables: Readonly<Record<string, string>>;
}

/** The working directories and variables of sessions. */
export interface SurroundingsStore {
  get(session: string): SessionSurroundings;
  /** Stores nothing for a session that does not exist. */
  setDirectory(session: string, directory: string): void;
  /** Sets variables, after it has removed those named `unset`. Stores nothing for a session that does not exist. */
  changeVariables(session: string, set: Readonly<Record<string, string>>, unset: readonly string[]): void;
}

export function createSurroundingsStore(database: Database): SurroundingsStore {
  const get = (session: string): SessionSurroundings => {
    const row = database
      .query<{ directory: string | null; variables: string }, [string]>(
        "SELECT directory, variables FROM session WHERE key = ?",
      )
      .get(session);
    return { directory: row?.directory ?? undefined, variables: JSON.parse(row?.variables ?? "{}") };
  };

  const change = database.transaction(
    (session: string, set: Readonly<Record<string, string>>, unset: readonly string[]) => {
      const kept = Object.entries(get(session).variables).filter(([name]) => !unset.includes(name));
      database
        .query("UPDATE session SET variables = ? WHERE key = ?")
        .run(JSON.stringify({ ...Object.fromEntries(kept), ...set }), session);
    },
  );

  return {
    get,
    setDirectory(session, directory) {
      database.query("UPDATE session SET directory = ? WHERE key = ?").run(directory, session);
    },
    changeVariables(session, set, unset) {
      change.immediate(session, set, unset);
    },
  };
}
