import type { Database } from "bun:sqlite";
import type { Clock } from "../clock.ts";
import { forgetOld } from "./forget.ts";

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
