/** Branches: the active one, their heads, and the history that they keep. */
import { beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { temporaryDirectory } from "../support/bough.ts";

let store: Store;
beforeEach(() => {
  store = openStore(join(temporaryDirectory(), "state.db"), systemClock);
});

function commit(branch: string, image: string, parent: number | null = null): number {
  const entry = { parent, image, kind: "run" as const, title: `run ${image}`, operation: null };
  return store.sessions.commit("k", branch, entry).id;
}

test("a session begins on main, and has no image before the first commit", () => {
  expect(store.branches.active("k")).toBe("main");
  expect(store.branches.head("k")).toBeUndefined();
  expect(store.branches.list("k")).toEqual([]);
  commit("main", "a");
  expect(store.branches.head("k")).toMatchObject({ image: "a", branches: ["main"] });
});

test("work goes on if the session is deleted meanwhile: its new history begins there", () => {
  const first = commit("main", "a");
  commit("main", "z", commit("other", "y", first));
  store.sessions.delete("k");
  const second = commit("main", "b", first);
  expect(store.sessions.history("k")).toMatchObject([{ id: second, parent: null, image: "b" }]);
});

test("the head is that of the branch that is checked out; commits to other branches do not change it", () => {
  const first = commit("main", "a");
  store.branches.set("k", "try", first);
  store.branches.checkOut("k", "try");
  commit("main", "b", first);
  expect(store.branches.head("k")).toMatchObject({ id: first, branches: ["try"] });
  expect(store.branches.list("k")).toMatchObject([
    { name: "main", image: "b", isActive: false },
    { name: "try", image: "a", entry: first, isActive: true },
  ]);
});

test("a branch can be moved back, but only to an entry of its own session", () => {
  const first = commit("main", "a");
  const second = commit("main", "b", first);
  store.branches.set("k", "main", first);
  expect(store.branches.head("k")?.image).toBe("a");
  expect(() => store.branches.set("k", "main", second + 1)).toThrow("no history entry");
  expect(() => store.branches.set("other", "main", first)).toThrow("no history entry");
});

test("deleting a session deletes its history and branches, and no other session", () => {
  commit("main", "a");
  const entry = { parent: null, image: "z", kind: "use" as const, title: "use z", operation: null };
  store.sessions.commit("other", "main", entry);
  expect(store.sessions.delete("k")).toBe(true);
  expect(store.sessions.delete("k")).toBe(false);
  expect(store.sessions.history("k")).toBeUndefined();
  expect(store.branches.active("k")).toBe("main");
  expect(store.sessions.list("").map(({ key }) => key)).toEqual(["other"]);
});

test("forgetting an image deletes the branches at it, and a session with its last image", () => {
  const first = commit("main", "a");
  commit("main", "b", first);
  commit("side", "c", first);
  store.sessions.forgetImages(["b", "elsewhere"]);
  expect(store.branches.list("k").map(({ name }) => name)).toEqual(["side"]);
  expect(store.sessions.images().sort()).toEqual(["a", "c"]);
  store.sessions.forgetImages(["a", "c"]);
  expect(store.sessions.list("")).toEqual([]);
});

test("what was made from a forgotten image goes on from that image's parent", () => {
  const first = commit("main", "a");
  commit("main", "c", commit("main", "b", first));
  store.sessions.forgetImages(["b"]);
  expect(store.sessions.history("k")).toMatchObject([
    { image: "a", parent: null },
    { image: "c", parent: first },
  ]);
});
