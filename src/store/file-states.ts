import type { Database } from "bun:sqlite";
import type { Clock } from "../clock.ts";
import { inTransaction } from "../database.ts";

/**
 * What steps came to, by the state in which `stat` found their files: where all of them are in that state again, they need not be
 * hashed or staged to know.
 */
export interface FileStateStore {
  /** What is remembered of a build context; nothing is read before the first question. */
  open(context: string): FileStates;
}

/** All but the step's chain hash are digests, too. */
export interface FileStateRow {
  /** The files that a COPY has found, and the state of each. */
  sources: string;
  /** The same with all that says where they go, and as whose. */
  copy: string;
  /** All but the staged files that the chain hash depends on. */
  step: string;
  /** The chain hash. */
  hash: string;
}

export interface FileStates {
  hasSources(sources: string): boolean;
  hasCopy(copy: string): boolean;
  hashOf(copy: string, step: string): string | undefined;
  /** Only of files that are settled, see `isSettled`: a later change of one must show in its state. */
  set(row: FileStateRow): void;
  /** True once a chain hash was found: the files behind it were not asked for one by one. */
  readonly isUsed: boolean;
  /** Writes what was set. */
  save(): void;
}

/** The latest ones of a context, whatever the Dockerfile. */
const maxRows = 64;
/** A context that nobody has built anew for so long is forgotten. */
const keptMilliseconds = 90 * 24 * 60 * 60 * 1000;

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
        hasCopy: (copy) => rows().some((row) => row.copy === copy),
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

/** What is no such list stands for none. */
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
