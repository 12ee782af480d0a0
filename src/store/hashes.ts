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
/** A context that nobody has built for so long is forgotten. */
const keptMilliseconds = 90 * 24 * 60 * 60 * 1000;

export function createHashStore(database: Database, clock: Clock): HashStore {
  const read = (context: string): FileTable => {
    const row = database
      .query<{ files: Uint8Array }, [string]>("SELECT files FROM hash WHERE context = ?")
      .get(context);
    return createFileTable(unpackFiles(row?.files ?? new Uint8Array()));
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
      let pending = new PendingFiles();
      let isSaving = false;
      return {
        get(path, state) {
          const row = pending.find(path);
          if (row !== undefined && pending.columns.isInState(row, state)) return pending.columns.hashAt(row);
          table ??= read(context);
          return table.get(path, state);
        },
        set(path, state, sha256) {
          pending.add(path, state, sha256);
        },
        get unsaved() {
          return pending.columns.length;
        },
        save() {
          const { length } = pending.columns;
          if (length === 0) return;
          table ??= read(context);
          const packing = packMerged(table.columns, pending, length);
          for (let step = packing.next(); ; step = packing.next())
            if (step.done) return put(step.value, length);
        },
        async saveIfDue(pace) {
          const saved = pending;
          const { length } = saved.columns;
          if (isSaving || length === 0) return;
          table ??= read(context);
          const isDue =
            length * writtenAgain >= table.columns.length || clock.now() - savedAt >= dueMilliseconds;
          if (!isDue) return;
          const packing = packMerged(table.columns, saved, length);
          isSaving = true;
          try {
            for (let step = packing.next(); ; step = packing.next()) {
              if (step.done) return put(step.value, length);
              const pause = pace.step();
              if (pause !== undefined) await pause;
              // All was saved meanwhile.
              if (pending !== saved) return;
            }
          } finally {
            isSaving = false;
          }
        },
        tidy() {
          // After a save it is unknown what was asked for before: the next build will tidy.
          if (hasSaved || table === undefined || table.columns.length <= maxUnasked * table.asked) return;
          put(packSome(table.columns, table.isAsked), 0);
        },
      };

      /** `saved`: how many of the pending ones are in it. */
      function put(packed: Uint8Array, saved: number): void {
        write.immediate(context, packed);
        table = undefined;
        hasSaved = true;
        savedAt = clock.now();
        pending = pending.after(saved);
      }
    },
  };
}
