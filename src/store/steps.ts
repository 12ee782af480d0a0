import type { Database } from "bun:sqlite";

/** A step that makes a layer, as of the latest build that reached it. */
export interface StepEntry {
  /** Its index among such steps of the Dockerfile. */
  ordinal: number;
  /** The layer's chain hash. */
  hash: string;
  /** The instruction on one line. */
  title: string;
  /** The inputs of the layer, as text; stored compressed. */
  readonly inputs: string;
}

/**
 * The steps of the latest build of each Dockerfile of a session, to explain later what has changed. One entry per step, for any
 * number of builds.
 */
export interface StepStore {
  /** Returns the steps of a Dockerfile, sorted by ordinal. */
  list(session: string, dockerfile: string): StepEntry[];
  /** Returns chain hashes by ordinal. */
  hashes(session: string, dockerfile: string): Map<number, string>;
  /** Returns the chain hashes of the latest builds of all of a session's Dockerfiles. */
  latestHashes(session: string): Set<string>;
  /** Replaces the entry with this ordinal. Stores nothing for a session that does not exist. */
  set(
    session: string,
    dockerfile: string,
    entry: Omit<StepEntry, "inputs"> & { inputs: string | Uint8Array },
  ): void;
  delete(session: string, dockerfile: string, ordinals: readonly number[]): void;
}

export function createStepStore(database: Database): StepStore {
  const ofDockerfile = `FROM step JOIN session ON session.id = step.session_id
     WHERE session.key = ? AND step.dockerfile = ? ORDER BY ordinal`;
  return {
    list: (session, dockerfile) =>
      database
        .query<StepRow, [string, string]>(`SELECT ordinal, hash, title, inputs ${ofDockerfile}`)
        .all(session, dockerfile)
        .map(({ inputs, ...entry }) => ({
          ...entry,
          // The inputs are decompressed on demand, since few of them are read.
          get inputs() {
            return Bun.zstdDecompressSync(inputs).toString();
          },
        })),

    hashes: (session, dockerfile) =>
      new Map(
        database
          .query<Pick<StepRow, "ordinal" | "hash">, [string, string]>(`SELECT ordinal, hash ${ofDockerfile}`)
          .all(session, dockerfile)
          .map(({ ordinal, hash }) => [ordinal, hash]),
      ),

    latestHashes: (session) =>
      new Set(
        database
          .query<{ hash: string }, [string]>(
            "SELECT hash FROM step JOIN session ON session.id = step.session_id WHERE session.key = ?",
          )
          .all(session)
          .map(({ hash }) => hash),
      ),

    set(session, dockerfile, { ordinal, hash, title, inputs }) {
      database
        .query(
          `INSERT INTO step (session_id, dockerfile, ordinal, hash, title, inputs)
           SELECT id, ?, ?, ?, ?, ? FROM session WHERE key = ?
           ON CONFLICT (session_id, dockerfile, ordinal) DO UPDATE
             SET hash = excluded.hash, title = excluded.title, inputs = excluded.inputs`,
        )
        .run(dockerfile, ordinal, hash, title, Bun.zstdCompressSync(inputs), session);
    },

    delete(session, dockerfile, ordinals) {
      database
        .query(
          `DELETE FROM step WHERE session_id = (SELECT id FROM session WHERE key = ?) AND dockerfile = ?
             AND ordinal IN (SELECT value FROM json_each(?))`,
        )
        .run(session, dockerfile, JSON.stringify(ordinals));
    },
  };
}

type StepRow = Omit<StepEntry, "inputs"> & { inputs: Uint8Array };
