import type { Database } from "bun:sqlite";

/** Facts about images of the service, by image and question. */
export interface FactStore {
  get(image: string, question: string): string | undefined;
  set(image: string, question: string, answer: string): void;
  /** Images that the service has listed before: one that is missing from a later list is gone. */
  readonly listedImages: { has(image: string): boolean; add(image: string): void };
}

export function createFactStore(database: Database): FactStore {
  const facts: FactStore = {
    get: (image, question) =>
      database
        .query<{ answer: string }, [string, string]>(
          "SELECT answer FROM fact WHERE image = ? AND question = ?",
        )
        .get(image, question)?.answer,
    set(image, question, answer) {
      // A build without changes stores the same facts again. Writing them would cost it a sync or two.
      if (facts.get(image, question) === answer) return;
      database
        .query("INSERT OR REPLACE INTO fact (image, question, answer) VALUES (?, ?, ?)")
        .run(image, question, answer);
    },
    listedImages: {
      has: (image) => facts.get(image, listed) !== undefined,
      add: (image) => facts.set(image, listed, "yes"),
    },
  };
  return facts;
}

const listed = "listed";
