import type { Database } from "bun:sqlite";

/**
 * What a FROM reference was imported as. Asked only where the service cannot be: one without a list of images would
 * otherwise import again, get another UUID, and lose the whole cache.
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
