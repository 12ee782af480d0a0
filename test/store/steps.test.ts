import { beforeEach, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { temporaryDirectory } from "../support/bough.ts";

let store: Store;
beforeEach(() => {
  store = openStore(join(temporaryDirectory(), "state.db"), systemClock);
  store.sessions.commit("k", "main", {
    parent: null,
    image: "i",
    kind: "from",
    title: "FROM i",
    operation: null,
  });
});

const step = (ordinal: number, hash: string, inputs = "{}") => ({
  ordinal,
  hash,
  title: `RUN ${hash}`,
  inputs,
});

test("keeps the latest record of each step of each Dockerfile", () => {
  store.steps.set("k", "/a/Dockerfile", step(1, "one"));
  store.steps.set("k", "/a/Dockerfile", step(0, "zero", '{"env": "ü"}'));
  store.steps.set("k", "/a/Dockerfile", step(1, "two"));
  store.steps.set("k", "/a/other", step(0, "other"));
  expect(store.steps.list("k", "/a/Dockerfile")).toEqual([step(0, "zero", '{"env": "ü"}'), step(1, "two")]);
  expect(store.steps.hashes("k", "/a/Dockerfile")).toEqual(
    new Map([
      [0, "zero"],
      [1, "two"],
    ]),
  );
});

test("deletes steps of one Dockerfile only", () => {
  for (const ordinal of [-10_000, 0, 1, 2]) store.steps.set("k", "/a", step(ordinal, `a${ordinal}`));
  store.steps.set("k", "/b", step(2, "b2"));
  store.steps.delete("k", "/a", [-10_000, 2, 3]);
  expect([...store.steps.hashes("k", "/a").keys()]).toEqual([0, 1]);
  expect(store.steps.latestHashes("k")).toEqual(new Set(["a0", "a1", "b2"]));
});

test("keeps nothing for a missing or deleted session", () => {
  store.steps.set("nobody", "/a", step(0, "zero"));
  expect(store.steps.list("nobody", "/a")).toEqual([]);
  store.steps.set("k", "/a", step(0, "zero"));
  store.sessions.delete("k");
  expect(store.steps.list("k", "/a")).toEqual([]);
});

test("ten builds with 10,000 changed files take less than half a megabyte", () => {
  for (let build = 0; build < 10; build++) {
    const files = Array.from({ length: 10_000 }, (_, index) => [
      `/srv/packages/module-${index % 300}/src/component-${index}.ts`,
      `file 0644 0:0 ${Bun.hash(`${build} ${index}`).toString(16).padStart(16, "0").slice(0, 12)}`,
    ]);
    store.steps.set("k", "/a", step(0, `build ${build}`, JSON.stringify(Object.fromEntries(files))));
  }
  store.close();
  expect(statSync(store.path).size).toBeLessThan(500_000);
});
