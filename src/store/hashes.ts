import type { Database } from "bun:sqlite";
import type { Clock } from "../clock.ts";
import { type Pace, takeStepsNow } from "../pace.ts";
import { createFileTable, FileColumns, type FileState, type FileTable, PendingFiles } from "./file-table.ts";

/** Hashes of files by their `stat`, so that unchanged files need not be read again. */
export interface HashStore {
  /** Opens the hashes of a build context. Reads nothing before the first query. */
  open(context: string): ContextHashes;
}

export interface ContextHashes {
  get(path: string, state: FileState): string | undefined;
  set(path: string, state: FileState, sha256: string): void;
  /** The number of hashes that were set and are not saved yet. */
  readonly unsaved: number;
  /** Writes the hashes that were set, atomically. */
  save(): void;
  /**
   * Saves if the unsaved hashes are a good part of the table, or if some time has passed, since the table is written as a whole. Yields
   * to other work; hashes that are set in that time may be saved later.
   */
  saveIfDue(pace: Pace): Promise<void>;
  /**
   * Removes, at the end of a build, the files that it has not queried, if these are most of the stored files: they are gone, or belong
   * to another Dockerfile.
   */
  removeUnqueried(): void;
}

/** Maximum ratio of stored files to those that a build has queried. */
const maxUnqueriedRatio = 2;
/** Maximum number of the table's rows to write for each changed one. */
const maxRewrittenRatio = 8;
/** Minimum time between other saves. Otherwise thousands of COPYs would write the table as often. */
const saveIntervalMilliseconds = 1000;
/** `writtenAt` of a missing row. */
const never = Number.NEGATIVE_INFINITY;
/** The time after which a context is removed that has not been written. */
export const keptMilliseconds = 90 * 24 * 60 * 60 * 1000;

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
  /** Returns false and writes nothing if the row was overwritten since it was read. */
  const write = database.transaction((context: string, files: Uint8Array, readAt: number): boolean => {
    const before = writtenAt(context);
    if (before !== readAt) return false;
    const now = clock.now();
    database.query("DELETE FROM hash WHERE written_at < ?").run(now - keptMilliseconds);
    database
      .query("INSERT OR REPLACE INTO hash (context, files, written_at) VALUES (?, ?, ?)")
      // Increases each time, even within a millisecond, since it identifies the version.
      .run(context, files, Math.max(now, before + 1));
    return true;
  });

  return {
    open(context) {
      let table: FileTable | undefined;
      /** `writtenAt` of that table. */
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
            if (put(takeStepsNow(packMerged(current().columns, pending, length)), length)) return;
          }
        },
        async saveIfDue(pace) {
          const saved = pending;
          const { length } = saved.columns;
          if (isSaving || length === 0) return;
          const isDue =
            length * maxRewrittenRatio >= current().columns.length ||
            clock.now() - savedAt >= saveIntervalMilliseconds;
          if (!isDue) return;
          isSaving = true;
          try {
            // Ends without a save if `save` has saved everything meanwhile.
            while (pending === saved) await saveOnce(saved, length, pace);
          } finally {
            isSaving = false;
          }
        },
        removeUnqueried() {
          // A save resets which files were queried. The next build removes the others.
          if (hasSaved || table === undefined || table.columns.length <= maxUnqueriedRatio * table.queried)
            return;
          put(packSome(table.columns, table.isQueried), 0);
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
       * Returns false if another build has written since the table was read: its hashes must not be lost. `saved`: the number of
       * pending rows in `packed`.
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

/**
 * The version of the format in which a context's files are stored: parts that are compressed one by one, so that packing can yield
 * in between. A new layout gets a new number.
 */
const formatVersion = 0xb0000003;
const numberBytes = Uint32Array.BYTES_PER_ELEMENT;
/** Rows of a part, which take some milliseconds to pack. */
const partRows = 4096;

class FilePacker {
  // One object serves all parts: a new one for each would be slow to grow, and to collect.
  readonly #part = new FileColumns();
  readonly #packed: Uint8Array[] = [];

  /** Returns whether a part was full, and was packed. */
  add(from: FileColumns, row: number): boolean {
    this.#part.copy(from, row);
    if (this.#part.length < partRows) return false;
    this.#pack();
    return true;
  }

  end(): Uint8Array {
    if (this.#part.length > 0) this.#pack();
    return Buffer.concat([uint32Bytes(formatVersion), ...this.#packed]);
  }

  #pack(): void {
    // Compression saves two thirds of the size, in less time than SQLite would take to write them.
    const compressed = Bun.zstdCompressSync(this.#part.toBytes(), { level: 1 });
    this.#packed.push(uint32Bytes(compressed.length), compressed);
    this.#part.clear();
  }
}

/** Returns no files for data that `FilePacker` has not made on a machine with the same byte order. */
export function unpackFiles(packed: Uint8Array): FileColumns {
  try {
    const bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.length);
    if (bytes.readUInt32LE(0) !== formatVersion) return new FileColumns();
    const parts: Uint8Array[] = [];
    for (let at = numberBytes; at < bytes.length; ) {
      const end = at + numberBytes + bytes.readUInt32LE(at);
      if (end > bytes.length) return new FileColumns();
      parts.push(Bun.zstdDecompressSync(bytes.subarray(at + numberBytes, end)));
      at = end;
    }
    return FileColumns.from(parts);
  } catch {
    return new FileColumns();
  }
}

function uint32Bytes(number: number): Uint8Array {
  const bytes = Buffer.alloc(numberBytes);
  bytes.writeUInt32LE(number);
  return bytes;
}

/**
 * Packs changed files in their old places, and new ones at the end. Yields after each part. Considers only the first `count`
 * pending files: there may be more when it continues.
 */
export function* packMerged(
  before: FileColumns,
  pending: PendingFiles,
  count: number,
): Generator<undefined, Uint8Array> {
  const packer = new FilePacker();
  const isPacked = new Uint8Array(count);
  for (let row = 0; row < before.length; row++) {
    const change = pending.find(before.paths.at(row));
    const isChanged = change !== undefined && change < count;
    if (isChanged) isPacked[change] = 1;
    if (isChanged ? packer.add(pending.columns, change) : packer.add(before, row)) yield;
  }
  for (let row = 0; row < count; row++) {
    if (pending.isLatest(row) && isPacked[row] === 0 && packer.add(pending.columns, row)) yield;
  }
  return packer.end();
}

/** Packs the rows to keep. */
function packSome(columns: FileColumns, isKept: (row: number) => boolean): Uint8Array {
  const packer = new FilePacker();
  for (let row = 0; row < columns.length; row++) if (isKept(row)) packer.add(columns, row);
  return packer.end();
}
