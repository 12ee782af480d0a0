import type { Database } from "bun:sqlite";

/** Which contents the service is known to have, by SHA-256, so that they need not even be asked for. */
export interface UploadCache {
  get(sha256: string): string | undefined;
  set(sha256: string, file: string): void;
  delete(sha256: string): void;
}

export function createUploadCache(database: Database): UploadCache {
  return {
    get: (sha256) =>
      database.query<{ file: string }, [string]>("SELECT file FROM upload WHERE sha256 = ?").get(sha256)
        ?.file,
    set(sha256, file) {
      database.query("INSERT OR REPLACE INTO upload (sha256, file) VALUES (?, ?)").run(sha256, file);
    },
    delete(sha256) {
      database.query("DELETE FROM upload WHERE sha256 = ?").run(sha256);
    },
  };
}
