/** The branch that the next image of a session goes to, also if two commands end at the same time. */
import { beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { appendEntries, workingBranch } from "../../src/cli/references/working-branch.ts";
import { systemClock } from "../../src/clock.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { temporaryDirectory } from "../support/bough.ts";

let store: Store;
beforeEach(() => {
  store = openStore(join(temporaryDirectory(), "state.db"), systemClock);
});

const entry = (image: string) => ({ image, kind: "run" as const, title: image, operation: null });
const hash = "0123456789abcdef".repeat(4);

test("each image follows the previous one, on the branch that was active when the command began", () => {
  appendEntries(store, workingBranch(store, "k"), [entry("a"), entry("b")]);
  const from = workingBranch(store, "k");
  store.branches.set("k", "other", from.head?.id ?? 0);
  store.branches.checkOut("k", "other");
  expect(appendEntries(store, from, [entry("c")])).toMatchObject({
    branch: "main",
    isNew: false,
    hasMoved: false,
  });
  expect(store.sessions.history("k")).toMatchObject([
    { image: "a", parent: null },
    { image: "b", parent: 1, branches: ["other"] },
    { image: "c", parent: 2, branches: ["main"] },
  ]);
  expect(store.branches.active("k")).toBe("other");
});

test("if two commands began together, the one that ends later gets the branch, and both images are kept", () => {
  appendEntries(store, workingBranch(store, "k"), [entry("a")]);
  const [one, two] = [workingBranch(store, "k"), workingBranch(store, "k")];
  expect(appendEntries(store, one, [entry("b")]).hasMoved).toBe(false);
  expect(appendEntries(store, two, [entry("c")]).hasMoved).toBe(true);
  expect(store.branches.head("k")?.image).toBe("c");
  expect(store.sessions.history("k")?.map(({ image, parent }) => [image, parent])).toEqual([
    ["a", null],
    ["b", 1],
    ["c", 1],
  ]);
});

test("a build's layer never moves: work on it goes to new branches", () => {
  store.sessions.commit("build:0", `layer:${hash}`, { ...entry("a"), parent: null });
  store.branches.checkOut("build:0", `layer:${hash}`);
  const first = appendEntries(store, workingBranch(store, "build:0"), [entry("b")]);
  expect(first).toMatchObject({ branch: "debug:0123456789ab", isNew: true });
  expect(store.branches.active("build:0")).toBe("debug:0123456789ab");
  store.branches.checkOut("build:0", `layer:${hash}`);
  expect(appendEntries(store, workingBranch(store, "build:0"), [entry("c")]).branch).toBe(
    "debug:0123456789ab-2",
  );
  expect(store.sessions.findBranch("build:0", `layer:${hash}`)?.image).toBe("a");
});
