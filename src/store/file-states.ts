import type { Database } from "bun:sqlite";
import type { Clock } from "../clock.ts";
import { inTransaction } from "../database.ts";
import { keptMilliseconds } from "./hashes.ts";

/**
 * Chain hashes of steps by the state (`stat`) of their files: if all files are in that state again, their chain hash is known
 * without hashing or staging them.
 */
export interface FileStateStore {
  /** Opens the rows of a build context. Reads nothing before the first query. */
  open(context: string): FileStates;
}

/** A COPY's files and their step, with the chain hash. All fields are digests. */
export interface FileStateRow {
  /** The files that a COPY has found, with their states. */
  sources: string;
  /** The files, with their states, destinations and owners. */
  copy: string;
  /** Everything that the chain hash depends on, except the staged files. */
  step: string;
  /** The step's chain hash. */
  hash: string;
}

export interface FileStates {
  hasSources(sources: string): boolean;
  hashOf(copy: string, step: string): string | undefined;
  /** Adds a row. All of its files must be settled (see `isSettled`), so that a later change shows in a file's state. */
  set(row: FileStateRow): void;
  /** True once a chain hash was found: the files behind it were not looked up one by one. */
  readonly isUsed: boolean;
  /** Writes the rows that were set. */
  save(): void;
}

/** The limit of rows for a context, for all of its Dockerfiles. */
const maxRows = 1000;

export function createFileStateStore(database: Database, clock: Clock): FileStateStore {
  const read = (context: string): FileStateRow[] => {
    const found = database
      .query<{ rows: string }, [string]>("SELECT rows FROM file_state WHERE context = ?")
      .get(context);
    return found === null ? [] : parseRows(found.rows);
  };
  const write = (context: string, rows: readonly FileStateRow[]) => {
    const now = clock.now();
    database.query("DELETE FROM file_state WHERE written_at < ?").run(now - keptMilliseconds);
    database
      .query("INSERT OR REPLACE INTO file_state (context, rows, written_at) VALUES (?, ?, ?)")
      .run(context, JSON.stringify(rows), now);
  };

  return {
    open(context) {
      let known: FileStateRow[] | undefined;
      let changes: FileStateRow[] = [];
      let isUsed = false;
      const rows = () => {
        known ??= read(context);
        return known;
      };
      return {
        hasSources: (sources) => rows().some((row) => row.sources === sources),
        hashOf(copy, step) {
          const hash = rows().find((row) => isSame(row, { copy, step }))?.hash;
          isUsed ||= hash !== undefined;
          return hash;
        },
        set(row) {
          changes = [row, ...changes.filter((change) => !isSame(change, row))];
        },
        get isUsed() {
          return isUsed;
        },
        save() {
          if (changes.length === 0) return;
          inTransaction(database, () => {
            // Another build may have written since.
            const others = read(context).filter((row) => !changes.some((change) => isSame(change, row)));
            write(context, [...changes, ...others].slice(0, maxRows));
          });
          changes = [];
          known = undefined;
        },
      };
    },
  };
}

/** Parses stored rows, without invalid ones. */
function parseRows(text: string): FileStateRow[] {
  try {
    const rows: unknown = JSON.parse(text);
    return Array.isArray(rows) ? rows.filter((row) => typeof row?.hash === "string") : [];
  } catch {
    return [];
  }
}

function isSame(one: Pick<FileStateRow, "copy" | "step">, other: Pick<FileStateRow, "copy" | "step">) {
  return one.copy === other.copy && one.step === other.step;
}
