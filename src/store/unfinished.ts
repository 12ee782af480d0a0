import type { Database } from "bun:sqlite";

/** An operation that a build has started, or was about to start, and whose result is not stored yet. */
export interface UnfinishedEntry {
  session: string;
  /** The key of the step, by which a later build finds the operation. */
  step: string;
  /** The process that waits for it. */
  owner: string;
  /** See service/operations/request-id.ts. */
  requestId: number;
  /** `null`: the response to its request has not arrived. */
  operation: string | null;
  /** Milliseconds since the epoch. */
  startedAt: number;
}

/** Records of operations, written before and after their start, so that a later build finds those of a killed build. */
export interface UnfinishedStore {
  begin(entry: UnfinishedEntry): void;
  setOperation(entry: Omit<UnfinishedEntry, "operation">, operation: string): void;
  /** True if a request with this id has started the operation in the last day. */
  wasStarted(requestId: number, operation: string): boolean;
  finish(session: string, steps: readonly string[], owner: string): void;
  /** Makes `owner` the owner of a step's operation that a dead process has left; the newest of several. */
  takeOver(
    session: string,
    step: string,
    owner: string,
    isAlive: (owner: string) => boolean,
  ): UnfinishedEntry | undefined;
}

/** The time for which entries are kept. No service keeps an operation for longer. */
const keptMilliseconds = 30 * 24 * 3600 * 1000;
/** The time for which started operations are kept, longer than a lost one is searched for. */
const keptStartedMilliseconds = 24 * 3600 * 1000;

export function createUnfinishedStore(database: Database): UnfinishedStore {
  const drop = (session: string, step: string, owner: string) =>
    database
      .query("DELETE FROM unfinished WHERE session = ? AND step = ? AND owner = ?")
      .run(session, step, owner).changes > 0;

  const begin = database.transaction((entry: UnfinishedEntry): void => {
    const { session, step, owner, requestId, operation, startedAt } = entry;
    database.query("DELETE FROM unfinished WHERE started_at < ?").run(startedAt - keptMilliseconds);
    database.query("DELETE FROM started WHERE started_at < ?").run(startedAt - keptStartedMilliseconds);
    database
      .query(
        `INSERT OR REPLACE INTO unfinished (session, step, owner, mark, operation, started_at)
         VALUES (?, ?, ?, ?, ?, ?)`,
      )
      .run(session, step, owner, requestId, operation, startedAt);
  });

  const setOperation = database.transaction(
    (entry: Omit<UnfinishedEntry, "operation">, operation: string): void => {
      const { session, step, owner, requestId, startedAt } = entry;
      database
        .query("UPDATE unfinished SET operation = ? WHERE session = ? AND step = ? AND owner = ?")
        .run(operation, session, step, owner);
      database
        .query("INSERT OR REPLACE INTO started (mark, operation, started_at) VALUES (?, ?, ?)")
        .run(requestId, operation, startedAt);
    },
  );

  const takeOver = database.transaction(
    (session: string, step: string, owner: string, left: readonly UnfinishedEntry[]) => {
      // Another process may have taken each of them first.
      const taken = left.filter((entry) => drop(session, step, entry.owner));
      const newest = taken.at(-1);
      if (newest === undefined) return undefined;
      const own = { ...newest, owner };
      begin(own);
      return own;
    },
  );

  return {
    begin: (entry) => begin.immediate(entry),
    setOperation: (entry, operation) => setOperation.immediate(entry, operation),
    wasStarted: (requestId, operation) =>
      database.query("SELECT 1 FROM started WHERE mark = ? AND operation = ?").get(requestId, operation) !==
      null,
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
        // Its own entries too: such an operation has finished, but the step had to start again before the result was used.
        .filter((entry) => entry.owner === owner || !isAlive(entry.owner));
      return left.length === 0 ? undefined : takeOver.immediate(session, step, owner, left);
    },
  };
}
