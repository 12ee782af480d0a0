import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import type { FileStateRow } from "../../src/store/file-states.ts";
import { openStore } from "../../src/store/store.ts";
import { temporaryDirectory } from "../support/bough.ts";

const row = (number: number): FileStateRow => ({
  sources: `sources ${number}`,
  copy: `copy ${number}`,
  step: "step",
  hash: `hash ${number}`,
});

function openStates(path: string) {
  const store = openStore(path, systemClock);
  return { states: store.fileStates.open("/context"), [Symbol.dispose]: () => store.close() };
}

test("the next build finds what was saved; only the latest rows are kept", () => {
  const path = join(temporaryDirectory(), "x.db");
  {
    using one = openStates(path);
    using other = openStates(path);
    expect(one.states.hashOf("copy 0", "step")).toBeUndefined();
    for (let number = 0; number < 1000; number++) one.states.set(row(number));
    for (let number = 1000; number < 1030; number++) other.states.set(row(number));
    one.states.save();
    other.states.save();
  }
  using again = openStates(path);
  const { states } = again;
  expect(states.isUsed).toBe(false);
  expect(states.hashOf("copy 1029", "step")).toBe("hash 1029");
  expect(states.hashOf("copy 1029", "another step")).toBeUndefined();
  expect([states.hasSources("sources 999"), states.hasSources("sources 0")]).toEqual([true, false]);
  expect(states.isUsed).toBe(true);
});

test.each(["no JSON", "{}", "[null, 1]"])("stored rows that are %p are ignored", (rows) => {
  const path = join(temporaryDirectory(), "x.db");
  using _ = openStates(path);
  using database = new Database(path);
  database.run("INSERT INTO file_state VALUES ('/context', ?, 0)", [rows]);
  using opened = openStates(path);
  expect(opened.states.hasSources("sources 1")).toBe(false);
  expect(opened.states.hashOf("copy 1", "step")).toBeUndefined();
});
