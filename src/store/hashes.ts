import type { Database } from "bun:sqlite";
import type { Clock } from "../clock.ts";
import {
  type FileRow,
  type FileState,
  type FileTable,
  isSameState,
  openFileTable,
  packFiles,
} from "./file-table.ts";

/** Hashes of files by what `stat` says about them, so that unchanged files need not be read again. */
export interface HashStore {
  /** What is remembered of a build context; nothing is read before the first question. */
  open(context: string): ContextHashes;
}

export interface ContextHashes {
  get(path: string, state: FileState): string | undefined;
  set(path: string, state: FileState, sha256: string): void;
  /** Hashes that are set, and not saved yet. */
  readonly unsaved: number;
  /** Writes what was set, all or nothing. */
  save(): void;
  /** The same where it is a good part of the table or some time has passed: the table is written as a whole. */
  saveIfDue(): void;
  /**
   * Forgets, at the end of a build, files that it has not asked for, once they are most of what is remembered: they are gone, or
   * another Dockerfile's.
   */
  tidy(): void;
}

/** Times as many as those that a build has asked for. */
const maxUnasked = 2;
/** Rows of the table for each one that has changed: that many are written for the sake of one. */
const writtenAgain = 8;
/** Else after the last time. Thousands of COPYs would else write the table as often. */
const dueMilliseconds = 1000;
/** A context that nobody has built for so long is forgotten. */
const keptMilliseconds = 90 * 24 * 60 * 60 * 1000;

export function createHashStore(database: Database, clock: Clock): HashStore {
  const read = (context: string): FileTable => {
    const row = database
      .query<{ files: Uint8Array }, [string]>("SELECT files FROM hash WHERE context = ?")
      .get(context);
    return openFileTable(row?.files ?? new Uint8Array());
  };
  const write = database.transaction((context: string, files: Uint8Array) => {
    const now = clock.now();
    database.query("DELETE FROM hash WHERE written_at < ?").run(now - keptMilliseconds);
    database
      .query("INSERT OR REPLACE INTO hash (context, files, written_at) VALUES (?, ?, ?)")
      .run(context, files, now);
  });

  return {
    open(context) {
      let table: FileTable | undefined;
      let hasSaved = false;
      let savedAt = Number.NEGATIVE_INFINITY;
      const changes = new Map<string, FileRow>();
      return {
        get(path, state) {
          const change = changes.get(path);
          if (change !== undefined && isSameState(change.state, state)) return change.sha256;
          table ??= read(context);
          return table.get(path, state);
        },
        set(path, state, sha256) {
          changes.set(path, { path, state, sha256 });
        },
        get unsaved() {
          return changes.size;
        },
        save,
        saveIfDue() {
          if (changes.size === 0) return;
          table ??= read(context);
          if (changes.size * writtenAgain >= table.length || clock.now() - savedAt >= dueMilliseconds) save();
        },
        tidy() {
          // After a save it is unknown what was asked for before: the next build will tidy.
          if (hasSaved || table === undefined || table.length <= maxUnasked * table.asked) return;
          put(table.askedFor());
        },
      };

      function save(): void {
        if (changes.size === 0) return;
        table ??= read(context);
        put(merge(table.rows(), changes));
      }

      function put(rows: readonly FileRow[]): void {
        write.immediate(context, packFiles(rows));
        table = undefined;
        hasSaved = true;
        savedAt = clock.now();
        changes.clear();
      }
    },
  };
}

/** Changed rows in their old places, new ones at the end. */
function merge(rows: readonly FileRow[], changes: Map<string, FileRow>): FileRow[] {
  const merged = rows.map((row) => {
    const change = changes.get(row.path);
    changes.delete(row.path);
    return change ?? row;
  });
  return [...merged, ...changes.values()];
}
