import type { Database } from "bun:sqlite";

/** The latest index read of each scope: it need not be fetched again while the service has the same one. */
export interface ScopeCopies {
  /** `image`: the UUID of the image that contains the index. */
  get(image: string): Uint8Array | undefined;
  /** Replaces the stored index of that scope. */
  set(scope: string, image: string, content: Uint8Array): void;
}

export function createScopeCopies(database: Database): ScopeCopies {
  return {
    get(image) {
      const row = database
        .query<{ content: Uint8Array }, [string]>("SELECT content FROM scope_copy WHERE image = ?")
        .get(image);
      return row === null ? undefined : Bun.zstdDecompressSync(row.content);
    },
    set(scope, image, content) {
      const packed = Bun.zstdCompressSync(Buffer.from(content), { level: 1 });
      database
        .query("INSERT OR REPLACE INTO scope_copy (scope, image, content) VALUES (?, ?, ?)")
        .run(scope, image, packed);
    },
  };
}
