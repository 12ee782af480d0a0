import type { Database } from "bun:sqlite";
import type { Clock } from "../clock.ts";
import { forgetOld } from "./forget.ts";

/** Facts about images of the service, by image and question. */
export interface FactStore {
  get(image: string, question: string): string | undefined;
  set(image: string, question: string, answer: string): void;
  /** Images that the service has listed before: one that is missing from a later list is gone. */
  readonly listedImages: { has(image: string): boolean; add(image: string): void };
  /** Names under which the service has listed an image. */
  readonly listedNames: { has(name: string): boolean; add(name: string): void };
  /** The version of HTTP that the service has chosen, and when. */
  readonly protocol: { get(): string | undefined; set(answer: string): void };
}

export function createFactStore(database: Database, clock: Pick<Clock, "now">): FactStore {
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
      const now = clock.now();
      // Those of images go with their images, those of layers and names after a time: they can be found again.
      forgetOld(database, "fact", now, "(question LIKE 'layer blob %' OR question LIKE 'listed as %')");
      database
        .query("INSERT OR REPLACE INTO fact (image, question, answer, written_at) VALUES (?, ?, ?, ?)")
        .run(image, question, answer, now);
    },
    listedImages: {
      has: (image) => facts.get(image, listed) !== undefined,
      add: (image) => facts.set(image, listed, "yes"),
    },
    listedNames: {
      has: (name) => facts.get(ofService, listedAs(name)) !== undefined,
      add: (name) => facts.set(ofService, listedAs(name), "yes"),
    },
    protocol: {
      get: () => facts.get(ofService, protocol),
      set: (answer) => facts.set(ofService, protocol, answer),
    },
  };
  return facts;
}

const listed = "listed";
const listedAs = (name: string) => `${listed} as ${name}`;
const protocol = "protocol";
/** A fact about the service itself has no image. */
const ofService = "";
