import type { Database } from "bun:sqlite";

/** Answers about images of the service, by image and question. */
export interface FactStore {
  get(image: string, question: string): string | undefined;
  set(image: string, question: string, answer: string): void;
}

export function createFactStore(database: Database): FactStore {
  return {
    get: (image, question) =>
      database
        .query<{ answer: string }, [string, string]>(
          "SELECT answer FROM fact WHERE image = ? AND question = ?",
        )
        .get(image, question)?.answer,
    set(image, question, answer) {
      database
        .query("INSERT OR REPLACE INTO fact (image, question, answer) VALUES (?, ?, ?)")
        .run(image, question, answer);
    },
  };
}
