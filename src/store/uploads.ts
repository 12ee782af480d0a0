import type { Database } from "bun:sqlite";
import type { Clock } from "../clock.ts";
import { isDiskFullError } from "../system-error.ts";
import { forgetOld } from "./database.ts";

/** The service's files by the SHA-256 of their content, so that the service need not be asked for them. */
export interface UploadCache {
  get(sha256: string): string | undefined;
  /** Adds an entry. Entries are written in batches, or by `flush`: those lost in a crash only cost another query. */
  set(sha256: string, file: string): void;
  flush(): void;
  delete(sha256: string): void;
}

/** The size of a batch: a transaction takes about as long as the upload of a small file. */
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
      if (!isDiskFullError(error)) throw error;
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

/** The last result of an `ADD <url>`, with the server's response headers. */
export interface UrlEntry {
  etag: string | null;
  lastModified: string | null;
  contentMd5: string | null;
  /** Milliseconds since the epoch at the server; `null` in an entry of an earlier version. */
  fetchedAt: number | null;
  sha256: string;
  size: number;
}

export interface UrlCache {
  get(url: string): UrlEntry | undefined;
  set(url: string, entry: UrlEntry): void;
}

export function createUrlCache(database: Database, clock: Pick<Clock, "now">): UrlCache {
  return {
    get: (url) =>
      database
        .query<UrlEntry, [string]>(
          `SELECT etag, last_modified AS lastModified, content_md5 AS contentMd5, fetched_at AS fetchedAt, sha256, size FROM url WHERE url = ?`,
        )
        .get(url) ?? undefined,
    set(url, entry) {
      const now = clock.now();
      forgetOld(database, "url", now);
      database
        .query(
          `INSERT OR REPLACE INTO url (url, etag, last_modified, content_md5, fetched_at, sha256, size, written_at)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
        )
        .run(
          ...([url, entry.etag, entry.lastModified, entry.contentMd5] as const),
          ...([entry.fetchedAt, entry.sha256, entry.size, now] as const),
        );
    },
  };
}
