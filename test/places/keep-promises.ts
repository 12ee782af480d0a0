import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Place } from "./place.ts";
import { type PlaceEntry, places } from "./places.ts";
import { promises } from "./promises.ts";
import { readPlacesTable } from "./table.ts";

/** Declares a test of each promise that the table in `test/README.md` has for a place. */
export function keepPromises(name: keyof typeof places): void {
  // It only ends what hangs: an emulated program takes a minute for a promise on a busy machine.
  setDefaultTimeout(300_000);
  const { open, atOnce = 1 }: PlaceEntry = places[name];
  const { rows } = readPlacesTable();
  describe(name, () => {
    let place: Place;
    beforeAll(async () => {
      place = await open();
    });
    afterAll(() => place?.close());

    const kept = Object.entries(promises).filter(([promise]) => rows[promise]?.[name] === "kept");
    test.each(kept)("%s", async (_, keep) => {
      const trials = Array.from({ length: atOnce }, () => keep({ place, word: makeWord() }));
      const ended = await Promise.allSettled(trials);
      expect(ended.flatMap((trial) => (trial.status === "rejected" ? [trial.reason] : []))).toEqual([]);
    });
  });
}

/** Letters and digits that nothing else has. */
function makeWord(): string {
  return `w${crypto.randomUUID().slice(0, 8)}`;
}
