import type { Database } from "bun:sqlite";

/**
 * The images that references name: imported by FROM or `bough images import`, or tagged. Used only if the service can't be asked:
 * without a list of images, a build would otherwise import again, get another UUID, and lose the whole cache.
 */
export interface ImportMemory {
  get(reference: string): string | undefined;
  set(reference: string, image: string): void;
  forgetImage(image: string): void;
}

export function createImportMemory(database: Database): ImportMemory {
  return {
    get: (reference) =>
      database
        .query<{ image: string }, [string]>("SELECT image FROM import WHERE reference = ?")
        .get(reference)?.image,
    set(reference, image) {
      database.query("INSERT OR REPLACE INTO import (reference, image) VALUES (?, ?)").run(reference, image);
    },
    forgetImage(image) {
      database.query("DELETE FROM import WHERE image = ?").run(image);
    },
  };
}
