import type { Database } from "bun:sqlite";

/** An operation that a build has started, or was about to start, and whose result it has not kept yet. */
export interface UnfinishedEntry {
  session: string;
  /** What it is for: the same step of a later build asks for it by this. */
  step: string;
  /** The process that waits for it. */
  owner: string;
  /** See service/operations/request-id.ts. */
  requestId: number;
  /** `null`: the answer to its request has not been there yet. */
  operation: string | null;
  /** Milliseconds since the epoch. */
  startedAt: number;
}

/** What is written down before and after an operation is started, so that one whose build was killed is found again. */
export interface UnfinishedStore {
  begin(entry: UnfinishedEntry): void;
  setOperation(entry: Pick<UnfinishedEntry, "session" | "step" | "owner">, operation: string): void;
  finish(session: string, steps: readonly string[], owner: string): void;
  /** Makes `owner` the one that waits for what a process that is gone has left of a step; the newest if it is several. */
  takeOver(
    session: string,
    step: string,
    owner: string,
    isAlive: (owner: string) => boolean,
  ): UnfinishedEntry | undefined;
}

/** No service remembers an operation for longer. */
const keptMilliseconds = 30 * 24 * 3600 * 1000;

export function createUnfinishedStore(database: Database): UnfinishedStore {
  const drop = (session: string, step: string, owner: string) =>
    database
      .query("DELETE FROM unfinished WHERE session = ? AND step = ? AND owner = ?")
      .run(session, step, owner).changes > 0;

  const begin = database.transaction((entry: UnfinishedEntry): void => {
    const { session, step, owner, requestId, operation, startedAt } = entry;
    database.query("DELETE FROM unfinished WHERE started_at < ?").run(startedAt - keptMilliseconds);
    database
      .query(
        `INSERT OR REPLACE INTO unfinished (session, step, owner, mark, operation, started_at)
         VALUES (?, ?, ?, ?, ?, ?)`,
      )
      .run(session, step, owner, requestId, operation, startedAt);
  });

  const takeOver = database.transaction(
    (session: string, step: string, owner: string, left: readonly UnfinishedEntry[]) => {
      // Another process may have been faster with each of them.
      const taken = left.filter((entry) => drop(session, step, entry.owner));
      const newest = taken.at(-1);
      if (newest !== undefined) begin({ ...newest, owner });
      return newest;
    },
  );

  return {
    begin: (entry) => begin.immediate(entry),
    setOperation({ session, step, owner }, operation) {
      database
        .query("UPDATE unfinished SET operation = ? WHERE session = ? AND step = ? AND owner = ?")
        .run(operation, session, step, owner);
    },
    finish(session, steps, owner) {
      for (const step of steps) drop(session, step, owner);
    },
    takeOver(session, step, owner, isAlive) {
      const left = database
        .query<UnfinishedEntry, [string, string]>(
          `SELECT session, step, owner, mark AS requestId, operation, started_at AS startedAt
           FROM unfinished WHERE session = ? AND step = ? ORDER BY started_at`,
        )
        .all(session, step)
        // Its own: finished, but of no use yet when the step had to be begun again.
        .filter((entry) => entry.owner === owner || !isAlive(entry.owner));
      return left.length === 0 ? undefined : takeOver.immediate(session, step, owner, left);
    },
  };
}
