import type { Database } from "bun:sqlite";
import type { Clock } from "../clock.ts";

/**
 * The origin of a history entry. `commit`: made by a build from pending changes of instructions: files, a WORKDIR, the
 * configuration.
 */
export type HistoryKind = "from" | "run" | "copy" | "commit" | "use";

export interface HistoryEntry {
  id: number;
  parent: number | null;
  image: string;
  kind: HistoryKind;
  /** The instruction or command as the user wrote it; for a commit, its content in brackets. */
  title: string;
  operation: string | null;
  /** The origin of a layer, see `layer-origin.ts`; null in an entry of an earlier version. */
  origin: string | null;
  /** Milliseconds since the epoch. */
  createdAt: number;
  /** Names of the branches with this tip. */
  branches: string[];
}

interface SessionSummary {
  key: string;
  /** The absolute path of the build context, for a build's session. */
  context: string | null;
  branches: number;
  entries: number;
  /** The image of the newest entry. */
  image: string | null;
  updatedAt: number;
}

/** The tip of a branch. */
type BranchTip = Pick<HistoryEntry, "id" | "image" | "kind" | "title" | "operation" | "origin" | "createdAt">;

export type NewEntry = Pick<HistoryEntry, "parent" | "image" | "kind" | "title" | "operation"> &
  Partial<Pick<HistoryEntry, "origin">>;

/** Sessions: named trees of images, with branches at their tips. A build's layers are branches named `layer:<chain-hash>`. */
export interface SessionStore {
  /** Returns the sessions whose key contains `filter`, the latest changed first. */
  list(filter: string): SessionSummary[];
  /** Returns the whole history, oldest first; `undefined` if there is no such session. */
  history(key: string): HistoryEntry[] | undefined;
  findBranch(key: string, branch: string): HistoryEntry | undefined;
  /** Returns the entry without its branches' names, which takes a tenth of the time: a build does so for each of its layers. */
  findTip(key: string, branch: string): BranchTip | undefined;
  /** Adds an entry and points the branch at it; creates missing sessions and branches. Atomic. */
  commit(key: string, branch: string, entry: NewEntry): HistoryEntry;
  /** Stores the build context of a session, if it exists, and that the session was used. */
  setContext(key: string, path: string): void;
  /** Sets the image that the session's latest failed build step has left. Returns the previous one. */
  setFailedImage(key: string, image: string | null): string | null;
  deleteBranch(key: string, branch: string): void;
  /** Removes entries of images that are gone, with the branches at them; and a session with its last entry. */
  forgetImages(images: Iterable<string>): void;
  /** Returns all images in the history of sessions. */
  images(): string[];
  /** Deletes a session with its whole history. Returns false if there is none. */
  delete(key: string): boolean;
}

export function createSessionStore(database: Database, clock: Clock): SessionStore {
  const commit = database.transaction((key: string, branch: string, entry: NewEntry) =>
    insertEntry(database, { key, branch, entry, now: clock.now() }),
  );
  const forgetImages = database.transaction((images: Iterable<string>) => deleteImages(database, images));

  return {
    list: (filter) =>
      database
        .query<SessionSummary, [string]>(
          `SELECT key, context,
             (SELECT count(*) FROM branch WHERE session_id = session.id) AS branches,
             (SELECT count(*) FROM history WHERE session_id = session.id) AS entries,
             (SELECT image FROM history WHERE session_id = session.id ORDER BY id DESC LIMIT 1) AS image,
             updated_at AS updatedAt
           FROM session WHERE instr(key, ?) > 0 ORDER BY updated_at DESC, key`,
        )
        .all(filter),

    history(key) {
      const rows = database
        .query<EntryRow, [string]>(`${selectEntry} WHERE session.key = ? ORDER BY history.id`)
        .all(key);
      if (rows.length > 0) return rows.map(entryOf);
      return database.query("SELECT 1 FROM session WHERE key = ?").get(key) === null ? undefined : [];
    },

    findBranch: (key, branch) => findEntry(database, key, branch),

    findTip: (key, branch) =>
      database
        .query<BranchTip, [string, string]>(
          `SELECT history.id, image, kind, title, operation, origin, created_at AS createdAt
           FROM branch JOIN history ON history.id = branch.history_id
           WHERE branch.session_id = (SELECT id FROM session WHERE key = ?) AND branch.name = ?`,
        )
        .get(key, branch) ?? undefined,

    commit(key, branch, entry) {
      commit.immediate(key, branch, entry);
      const committed = findEntry(database, key, branch);
      if (committed === undefined)
        throw new Error(`branch ${branch} of ${key} vanished while it was written`);
      return committed;
    },

    setContext(key, path) {
      const now = clock.now();
      // A read comes first, since a write takes a lock even if it changes nothing. An hour makes no difference to what depends on the age.
      const session = database
        .query<{ context: string | null; updatedAt: number }, [string]>(
          "SELECT context, updated_at AS updatedAt FROM session WHERE key = ?",
        )
        .get(key);
      if (session === null || (session.context === path && session.updatedAt >= now - 3_600_000)) return;
      database.query("UPDATE session SET context = ?, updated_at = ? WHERE key = ?").run(path, now, key);
    },

    setFailedImage(key, image) {
      const before = database
        .query<{ failed_image: string | null }, [string]>("SELECT failed_image FROM session WHERE key = ?")
        .get(key);
      database.query("UPDATE session SET failed_image = ? WHERE key = ?").run(image, key);
      return before?.failed_image ?? null;
    },

    deleteBranch(key, branch) {
      database
        .query("DELETE FROM branch WHERE name = ? AND session_id = (SELECT id FROM session WHERE key = ?)")
        .run(branch, key);
    },

    delete: (key) => database.query("DELETE FROM session WHERE key = ?").run(key).changes > 0,

    images: () =>
      database
        .query<{ image: string }, []>("SELECT DISTINCT image FROM history")
        .all()
        .map(({ image }) => image),

    forgetImages(images) {
      forgetImages.immediate(images);
    },
  };
}

function findEntry(database: Database, key: string, branch: string): HistoryEntry | undefined {
  const row = database
    .query<EntryRow, [string, string]>(
      `${selectEntry} JOIN branch ON branch.history_id = history.id AND branch.session_id = history.session_id
       WHERE session.key = ? AND branch.name = ?`,
    )
    .get(key, branch);
  return row === null ? undefined : entryOf(row);
}

/** Adds an entry, and points the branch at it. */
function insertEntry(
  database: Database,
  { key, branch, entry, now }: { key: string; branch: string; entry: NewEntry; now: number },
): void {
  const session = database
    .query<{ id: number }, [string, number, number]>(
      `INSERT INTO session (key, created_at, updated_at) VALUES (?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET updated_at = excluded.updated_at RETURNING id`,
    )
    .get(key, now, now);
  const history = database
    .query<
      { id: number },
      [number, number | null, string, string, string, string | null, string | null, number]
    >(
      // The session may have been deleted meanwhile, with the parent: the new one then begins with this entry.
      `INSERT INTO history (session_id, parent_id, image, kind, title, operation, origin, created_at)
       VALUES (?1, (SELECT id FROM history WHERE id = ?2 AND session_id = ?1), ?3, ?4, ?5, ?6, ?7, ?8) RETURNING id`,
    )
    .get(
      session?.id ?? 0,
      entry.parent,
      ...([entry.image, entry.kind, entry.title, entry.operation, entry.origin ?? null, now] as const),
    );
  database
    .query(
      `INSERT INTO branch (session_id, name, history_id) VALUES (?, ?, ?)
       ON CONFLICT (session_id, name) DO UPDATE SET history_id = excluded.history_id`,
    )
    .run(session?.id ?? 0, branch, history?.id ?? 0);
}

function deleteImages(database: Database, images: Iterable<string>): void {
  const forget = database.query<{ session_id: number }, [string]>(
    "DELETE FROM history WHERE image = ? RETURNING session_id",
  );
  // Entries made from a removed image get that image's parent.
  const adopt = database.query<undefined, [string]>(
    `UPDATE history SET parent_id = (SELECT gone.parent_id FROM history gone WHERE gone.id = history.parent_id)
     WHERE parent_id IN (SELECT id FROM history WHERE image = ?)`,
  );
  const sessions = new Set<number>();
  for (const image of images) {
    adopt.run(image);
    for (const { session_id } of forget.all(image)) sessions.add(session_id);
  }
  for (const id of sessions)
    database
      .query("DELETE FROM session WHERE id = ? AND NOT EXISTS (SELECT 1 FROM history WHERE session_id = ?)")
      .run(id, id);
}

const selectEntry = `
  SELECT history.id, parent_id AS parent, image, kind, title, operation, origin, history.created_at AS createdAt, (
    SELECT json_group_array(name ORDER BY name) FROM branch AS tip WHERE tip.history_id = history.id
  ) AS branches
  FROM history JOIN session ON session.id = history.session_id`;

type EntryRow = Omit<HistoryEntry, "branches"> & { branches: string };

function entryOf(row: EntryRow): HistoryEntry {
  return { ...row, branches: JSON.parse(row.branches) };
}
