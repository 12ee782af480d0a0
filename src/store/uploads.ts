import type { Database } from "bun:sqlite";
import { meansDiskFull } from "../system-error.ts";

/** The service's files by the SHA-256 of their content, so that the service need not be asked for them. */
export interface UploadCache {
  get(sha256: string): string | undefined;
  /** Written in batches, or by `flush`: entries lost in a crash only cost another query. */
  set(sha256: string, file: string): void;
  flush(): void;
  delete(sha256: string): void;
}

/** A transaction takes about as long as the upload of a small file. */
const maxUnwritten = 500;

export function createUploadCache(database: Database): UploadCache {
  const unwritten = new Map<string, string>();
  const write = database.transaction(() => {
    const insert = database.query("INSERT OR REPLACE INTO upload (sha256, file) VALUES (?, ?)");
    for (const [sha256, file] of unwritten) insert.run(sha256, file);
  });
  const flush = () => {
    if (unwritten.size === 0) return;
    try {
      write.immediate();
    } catch (error) {
      if (!meansDiskFull(error)) throw error;
    }
    unwritten.clear();
  };
  return {
    flush,
    get: (sha256) =>
      unwritten.get(sha256) ??
      database.query<{ file: string }, [string]>("SELECT file FROM upload WHERE sha256 = ?").get(sha256)
        ?.file,
    set(sha256, file) {
      unwritten.set(sha256, file);
      if (unwritten.size >= maxUnwritten) flush();
    },
    delete(sha256) {
      unwritten.delete(sha256);
      database.query("DELETE FROM upload WHERE sha256 = ?").run(sha256);
    },
  };
}
