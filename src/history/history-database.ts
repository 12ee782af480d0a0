import type { Database } from "bun:sqlite";
import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { inTransaction, isDamaged, openDatabase } from "../database.ts";
import { requireOwnDirectory, requireOwnFile } from "../own-path.ts";
import { errorCode } from "../system-error.ts";
import { type BuildDoor, type BuildRecord, type BuildStatus, countCached } from "./build-record.ts";

/** A build in a list. */
export interface BuildSummary {
  id: string;
  /** Milliseconds since the epoch. */
  startedAt: number;
  status: BuildStatus;
  name: string;
  door: BuildDoor;
  isCi: boolean;
  context: string;
  dockerfile: string;
  target: string | null;
  bakeTarget: string | null;
  seconds: number;
  /** The number of steps that make a layer, and of those that were cached. */
  layers: number;
  cached: number;
  /** The first line of the error. */
  error: string | null;
  /** The process of a build that has not ended. */
  owner: string;
}

/** The builds of one home. */
export interface History extends Disposable {
  /** Adds or replaces a build, with the output of its steps that is not stored yet. Removes the oldest builds beyond the bounds. */
  save(record: BuildRecord, owner: string, outputs: ReadonlyMap<number, string>): void;
  /** The newest first. */
  list(): BuildSummary[];
  record(id: string): BuildRecord | undefined;
  /** Returns the kept output of a step, if it has any. */
  output(id: string, step: number): string | undefined;
  remove(ids: readonly string[]): void;
  /** Returns the number of builds. */
  count(): number;
  /** Returns the size of the records and the output of some builds, compressed. */
  bytesOf(ids: readonly string[]): number;
  /** Returns the bytes of the file that removed builds have left. */
  freeBytes(): number;
  /** Gives the space of removed builds back to the disk, unless another process writes: then the next call does. */
  compact(): void;
}

/** The bounds of a history. */
interface HistoryBounds {
  builds: number;
  bytes: number;
  ageMilliseconds: number;
}

const historyBounds: HistoryBounds = {
  builds: 1000,
  bytes: 64 * 1000 * 1000,
  ageMilliseconds: 90 * 86_400_000,
};

/** Returns the path of the database. Its name contains the version of the format: a new version begins with an empty history. */
export function historyPath(home: string): string {
  return join(home, "history-v1.db");
}

/** Returns the history of a home if there is one, for commands that only read. */
export function openExistingHistory(home: string): History | undefined {
  return existsSync(historyPath(home)) ? openHistory(home) : undefined;
}

/** Opens the history of a home, or makes it. A damaged one is deleted, since no build needs it. */
export function openHistory(home: string, bounds = historyBounds): History {
  const path = historyPath(home);
  requireOwnDirectory(dirname(path), { isLinkable: true });
  for (const suffix of suffixes) requireOwnFile(path + suffix);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  return historyIn(open(path), bounds);
}

const suffixes = ["", "-wal", "-shm"];

function open(path: string): Database {
  try {
    return openFast(path);
  } catch (error) {
    if (!isDamaged(error)) throw error;
    for (const suffix of suffixes) rmSync(path + suffix, { force: true });
    return openFast(path);
  }
}

/** Opens a database without syncing to the disk: after a loss of power, the newest builds may be missing. */
function openFast(path: string): Database {
  const database = openDatabase(path, [tables], undefined, waitMilliseconds);
  database.run("PRAGMA synchronous = OFF");
  return database;
}

/** The time to wait for another process that writes. */
const waitMilliseconds = 2000;

const tables = `
  CREATE TABLE build (
    id TEXT PRIMARY KEY, started_at INTEGER NOT NULL, status TEXT NOT NULL, name TEXT NOT NULL, door TEXT NOT NULL,
    is_ci INTEGER NOT NULL, context TEXT NOT NULL, dockerfile TEXT NOT NULL, target TEXT, bake_target TEXT, seconds REAL NOT NULL,
    layers INTEGER NOT NULL, cached INTEGER NOT NULL, error TEXT, owner TEXT NOT NULL, bytes INTEGER NOT NULL,
    record BLOB NOT NULL
  ) STRICT;
  CREATE INDEX build_by_time ON build (started_at, id, bytes);
  CREATE TABLE output (
    build TEXT NOT NULL REFERENCES build (id) ON DELETE CASCADE, step INTEGER NOT NULL, text BLOB NOT NULL,
    PRIMARY KEY (build, step)
  ) STRICT, WITHOUT ROWID;
`;

function historyIn(database: Database, bounds: HistoryBounds): History {
  const remove = (ids: readonly string[]) => {
    const query = database.query<undefined, [string]>("DELETE FROM build WHERE id = ?");
    for (const id of ids) query.run(id);
  };
  const freeBytes = () => {
    const pragma = (name: string) =>
      database.query<Record<string, number>, []>(`PRAGMA ${name}`).get()?.[name] ?? 0;
    return pragma("freelist_count") * pragma("page_size");
  };
  return {
    save(record, owner, outputs) {
      const packed = Bun.zstdCompressSync(JSON.stringify(record));
      const texts = [...outputs].map(([step, text]) => ({ step, text: Bun.zstdCompressSync(text) }));
      inTransaction(database, () => {
        saveBuild(database, record, owner, packed);
        for (const { step, text } of texts)
          database
            .query("INSERT OR REPLACE INTO output (build, step, text) VALUES (?, ?, ?)")
            .run(record.id, step, text);
        const { bytes } = database
          .query<{ bytes: number }, [string]>(
            "SELECT coalesce(sum(length(text)), 0) AS bytes FROM output WHERE build = ?",
          )
          .get(record.id) ?? { bytes: 0 };
        database.query("UPDATE build SET bytes = ? WHERE id = ?").run(bytes + packed.length, record.id);
        remove(beyondBounds(database, record.startedAt, bounds));
      });
    },
    list: () =>
      database
        .query<SummaryRow, []>(`SELECT ${summaryColumns} FROM build ORDER BY started_at DESC, id`)
        .all()
        .map(({ isCi, ...row }) => ({ ...row, isCi: isCi !== 0 })),
    record(id) {
      const row = database
        .query<{ record: Uint8Array }, [string]>("SELECT record FROM build WHERE id = ?")
        .get(id);
      return row === null ? undefined : JSON.parse(Bun.zstdDecompressSync(row.record).toString());
    },
    output(id, step) {
      const row = database
        .query<{ text: Uint8Array }, [string, number]>("SELECT text FROM output WHERE build = ? AND step = ?")
        .get(id, step);
      return row === null ? undefined : Bun.zstdDecompressSync(row.text).toString();
    },
    remove: (ids) => inTransaction(database, () => remove(ids)),
    count: () =>
      database.query<{ count: number }, []>("SELECT count(*) AS count FROM build").get()?.count ?? 0,
    bytesOf: (ids) =>
      database
        .query<{ bytes: number }, [string]>(
          "SELECT coalesce(sum(bytes), 0) AS bytes FROM build WHERE id IN (SELECT value FROM json_each(?))",
        )
        .get(JSON.stringify(ids))?.bytes ?? 0,
    freeBytes,
    compact() {
      if (freeBytes() === 0) return;
      try {
        database.run("VACUUM");
        database.run("PRAGMA wal_checkpoint(TRUNCATE)");
      } catch (error) {
        if (!errorCode(error)?.startsWith("SQLITE_BUSY")) throw error;
      }
    },
    [Symbol.dispose]: () => database.close(),
  };
}

const summaryColumns = `id, started_at AS startedAt, status, name, door, is_ci AS isCi, context, dockerfile, target,
  bake_target AS bakeTarget, seconds,  layers, cached, error, owner`;

type SummaryRow = Omit<BuildSummary, "isCi"> & { isCi: number };

function saveBuild(database: Database, record: BuildRecord, owner: string, packed: Uint8Array): void {
  const { id, startedAt, status, seconds, origin, error } = record;
  const { name, door, isCi, context, dockerfile, target, bakeTarget } = origin;
  const { layers, cached } = countCached(record.steps);
  database
    .query(
      `INSERT INTO build (id, started_at, status, name, door, is_ci, context, dockerfile, target, bake_target, seconds, layers,
         cached, error, owner, bytes, record)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)
       ON CONFLICT (id) DO UPDATE SET status = excluded.status, seconds = excluded.seconds, layers = excluded.layers,
         cached = excluded.cached, error = excluded.error, record = excluded.record`,
    )
    .run(
      ...([
        id,
        startedAt,
        status,
        name,
        door,
        isCi ? 1 : 0,
        context,
        dockerfile,
        target,
        bakeTarget,
      ] as const),
      ...([seconds, layers, cached, error?.message.split("\n", 1)[0] ?? null, owner, packed] as const),
    );
}

/** Returns the oldest builds, which have to be removed. The one that begins at `now` stays. */
function beyondBounds(database: Database, now: number, bounds: HistoryBounds): string[] {
  const rows = database
    .query<{ id: string; startedAt: number; bytes: number }, []>(
      "SELECT id, started_at AS startedAt, bytes FROM build ORDER BY started_at DESC, id DESC",
    )
    .all();
  let total = 0;
  return rows.flatMap(({ id, startedAt, bytes }, at) => {
    total += bytes;
    const isKept =
      at === 0 || (at < bounds.builds && total <= bounds.bytes && startedAt >= now - bounds.ageMilliseconds);
    return isKept ? [] : id;
  });
}

/** The size of the files of a home's history, on the disk. */
export function historyFileBytes(home: string): number {
  return suffixes.reduce(
    (sum, suffix) => sum + (statSync(historyPath(home) + suffix, { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
}
