import type { Database } from "bun:sqlite";
import type { Clock } from "../clock.ts";
import type { Pace } from "../pace.ts";
import type { FileState } from "./file-columns.ts";
import { createFileTable, type FileTable } from "./file-table.ts";
import { packMerged, packSome } from "./merge-files.ts";
import { unpackFiles } from "./packed-files.ts";
import { PendingFiles } from "./pending-files.ts";

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
  /**
   * The same where it is a good part of the table or some time has passed: the table is written as a whole. It gives way; what is set
   * meanwhile may be saved later.
   */
  saveIfDue(pace: Pace): Promise<void>;
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
/** When what is not there was written. */
const never = Number.NEGATIVE_INFINITY;
/** A context that nobody has built for so long is forgotten. */
const keptMilliseconds = 90 * 24 * 60 * 60 * 1000;

export function createHashStore(database: Database, clock: Clock): HashStore {
  const read = (context: string) =>
    database
      .query<{ files: Uint8Array; writtenAt: number }, [string]>(
        "SELECT files, written_at AS writtenAt FROM hash WHERE context = ?",
      )
      .get(context);
  const writtenAt = (context: string) =>
    database
      .query<{ writtenAt: number }, [string]>("SELECT written_at AS writtenAt FROM hash WHERE context = ?")
      .get(context)?.writtenAt ?? never;
  /** Returns false, and writes nothing, where what was read has been written over since. */
  const write = database.transaction((context: string, files: Uint8Array, readAt: number): boolean => {
    const before = writtenAt(context);
    if (before !== readAt) return false;
    const now = clock.now();
    database.query("DELETE FROM hash WHERE written_at < ?").run(now - keptMilliseconds);
    database
      .query("INSERT OR REPLACE INTO hash (context, files, written_at) VALUES (?, ?, ?)")
      // Later each time, also within a millisecond: it tells one version from the other.
      .run(context, files, Math.max(now, before + 1));
    return true;
  });

  return {
    open(context) {
      let table: FileTable | undefined;
      /** When that was written. */
      let readAt = never;
      let hasSaved = false;
      let savedAt = Number.NEGATIVE_INFINITY;
      let pending = new PendingFiles();
      let isSaving = false;
      return {
        get(path, state) {
          const row = pending.find(path);
          if (row !== undefined && pending.columns.isInState(row, state)) return pending.columns.hashAt(row);
          return current().get(path, state);
        },
        set(path, state, sha256) {
          pending.add(path, state, sha256);
        },
        get unsaved() {
          return pending.columns.length;
        },
        save() {
          const { length } = pending.columns;
          while (length > 0) {
            const packing = packMerged(current().columns, pending, length);
            let step = packing.next();
            while (!step.done) step = packing.next();
            if (put(step.value, length)) return;
          }
        },
        async saveIfDue(pace) {
          const saved = pending;
          const { length } = saved.columns;
          if (isSaving || length === 0) return;
          const isDue =
            length * writtenAgain >= current().columns.length || clock.now() - savedAt >= dueMilliseconds;
          if (!isDue) return;
          isSaving = true;
          try {
            // Else all was saved meanwhile.
            while (pending === saved) await saveOnce(saved, length, pace);
          } finally {
            isSaving = false;
          }
        },
        tidy() {
          // After a save, or a try, it is unknown what was asked for before: the next build will tidy.
          if (hasSaved || table === undefined || table.columns.length <= maxUnasked * table.asked) return;
          put(packSome(table.columns, table.isAsked), 0);
        },
      };

      function current(): FileTable {
        if (table !== undefined) return table;
        const row = read(context);
        readAt = row?.writtenAt ?? never;
        table = createFileTable(unpackFiles(row?.files ?? new Uint8Array()));
        return table;
      }

      async function saveOnce(saved: PendingFiles, length: number, pace: Pace): Promise<void> {
        const packing = packMerged(current().columns, saved, length);
        let step = packing.next();
        while (!step.done) {
          const pause = pace.step();
          if (pause !== undefined) await pause;
          if (pending !== saved) return;
          step = packing.next();
        }
        put(step.value, length);
      }

      /**
       * Returns false where another build has written since the table was read: what that has found out is not to be lost. `saved`:
       * how many of the pending ones are in it.
       */
      function put(packed: Uint8Array, saved: number): boolean {
        const isWritten = write.immediate(context, packed, readAt);
        table = undefined;
        hasSaved = true;
        if (!isWritten) return false;
        savedAt = clock.now();
        if (saved > 0) pending = pending.after(saved);
        return true;
      }
    },
  };
}
