/** The images, layers, files, caches and records that a prune removes, and their order. */
import { expect, test } from "bun:test";
import type { Inventory } from "../../src/engine/prune/inventory.ts";
import { bytesToKeep, type Disk, needsRoom } from "../../src/engine/prune/room.ts";
import { type PruneSelection, type SessionUse, select } from "../../src/engine/prune/selection.ts";

/**
 * The layers are base (tagged) <- old1 <- old2, base <- new1 <- new2 (configured: final), base <- lone and new1 <- done
 * (tagged). No session uses lone and done. Each layer takes 100 bytes, a file 10, a cache 20.
 */
const layers = ["base", "old1", "old2", "new1", "new2", "lone", "done"];
const parents: Record<string, string> = {
  old1: "base",
  old2: "old1",
  new1: "base",
  new2: "new1",
  lone: "base",
  done: "new1",
};
const idOf = (name: string) => layers.indexOf(name) + 1;
const image = (uuid: string, layer: string, usedAt: number, more: object = {}) => ({
  ...{ uuid, layer: idOf(layer), usedAt, tags: [], isInUse: false },
  ...more,
});
const inventory: Inventory = {
  layers: layers
    .map((name) => ({
      id: idOf(name),
      parent: idOf(parents[name] ?? "") || null,
      isImported: name === "base",
    }))
    .reverse(),
  images: [
    image("base", "base", 1, { tags: ["base:1"] }),
    image("old1", "old1", 10),
    image("old2", "old2", 11),
    image("new1", "new1", 20),
    image("new2", "new2", 21),
    image("final", "new2", 21),
    image("lone", "lone", 5),
    image("done", "done", 30, { tags: ["done:1"] }),
  ],
  files: [{ name: "file", usedAt: 15 }],
  caches: [{ name: "cache", usedAt: 25 }],
  operations: [
    { name: "early", usedAt: 2 },
    { name: "late", usedAt: 40 },
  ],
  hasRunning: false,
};
const use = (isCurrent: boolean, usedAt: number): SessionUse => ({ session: "k", usedAt, isCurrent });
const uses = new Map([
  ["base", use(true, 50)],
  ["old1", use(false, 10)],
  ["old2", use(false, 11)],
  ["new1", use(true, 50)],
  ["new2", use(true, 50)],
  ["final", use(true, 50)],
]);
const room = { bytesToKeep: () => 0, keepsCurrentSince: 51 };
const sizes = {
  ...{ createFreed: () => () => 100, file: () => 10, cache: () => 20, operation: () => 1 },
  total: () => 732,
};

const outcome = (selection: Partial<PruneSelection>, from: Partial<Inventory> = {}) => {
  const bare = { uses, all: false, sessions: false, logsBefore: 3 };
  const taken = select({ ...inventory, ...from }, { ...bare, ...selection }, sizes);
  const names = taken.layers.map((id) => layers[id - 1]);
  return [taken.images, names, taken.files, taken.caches, taken.operations]
    .map((list) => list.join(" "))
    .join("; ");
};

test.each<[string, Partial<PruneSelection>, string]>([
  ["without options: everything unused", {}, "lone old2 old1; lone old2 old1; file; cache; early"],
  [
    "with an age: unused and old, without newer dependants",
    { usedBefore: 11, logsBefore: 11 },
    "lone; lone; ; ; early",
  ],
  [
    "with sessions: the images of sessions too",
    { sessions: true },
    "old1 old2 new1 new2 final lone; lone new2 old2 old1; file; cache; early",
  ],
  [
    "with all: everything",
    { all: true },
    "base old1 old2 new1 new2 final lone done; done lone new2 new1 old2 old1 base; file; cache; early late",
  ],
  [
    "with enough space to keep: only the unused images",
    { keepBytes: 431 },
    "lone old2 old1; lone old2 old1; ; ; early",
  ],
  [
    "with less space: the file, which is the least recently used",
    { keepBytes: 425 },
    "lone old2 old1; lone old2 old1; file; ; early",
  ],
  [
    "with less space: then the cache",
    { keepBytes: 420 },
    "lone old2 old1; lone old2 old1; file; cache; early",
  ],
  [
    "with less space: then the last steps of a build, which are one layer",
    { keepBytes: 399 },
    "lone old2 old1 new2 final; lone new2 old2 old1; file; cache; early",
  ],
  [
    "with no space: tagged images and their layers stay",
    { keepBytes: 0 },
    "lone old2 old1 new2 final; lone new2 old2 old1; file; cache; early",
  ],
  [
    "to make room where there is enough: only old logs",
    { makeRoom: { ...room, bytesToKeep: (used) => used } },
    "; ; ; ; early",
  ],
  [
    "to make room: the least recently used, whether a session uses it or not",
    { makeRoom: { ...room, bytesToKeep: (used) => used - 250 } },
    "lone old2 old1; lone old2 old1; ; ; early",
  ],
  [
    "to make more room: what is current too, but no tag",
    { makeRoom: room },
    "lone old2 old1 new2 final; lone new2 old2 old1; file; cache; early",
  ],
  [
    "to make room: nothing that the latest builds have used lately",
    { makeRoom: { ...room, keepsCurrentSince: 50 } },
    "lone old2 old1; lone old2 old1; file; cache; early",
  ],
  [
    "to make room: nothing that only a session of people has",
    { makeRoom: room, uses: new Map([...uses, ["old2", { ...use(true, 11), holdsWork: true }]]) },
    "lone new2 final; lone new2; file; cache; early",
  ],
])("%s", (_, selection, expected) => {
  expect(outcome(selection)).toBe(expected);
});

test("images of running operations stay, and during one all uploaded files", () => {
  const images = inventory.images.map((each) => ({ ...each, isInUse: each.uuid === "old2" }));
  expect(outcome({ all: true }, { images, hasRunning: true })).toBe(
    "base old1 new1 new2 final lone done; done lone new2 new1; ; cache; early late",
  );
});

const ofUser: Partial<Inventory> = {
  images: inventory.images.map((each) => ({ ...each, isInUse: each.uuid === "old2" })),
};
test.each<[string, Partial<PruneSelection>, Partial<Inventory>, string[]]>([
  ["of all layers that stay", {}, {}, ["base"]],
  ["but of none that is removed", { all: true }, {}, []],
  ["but of none that something on it has used lately", { usedBefore: 50 }, {}, []],
  ["also with an age", { usedBefore: 51 }, {}, ["base"]],
  ["but of none that a running operation needs", {}, ofUser, []],
  ["but of none unless they are asked for", { archives: false }, {}, []],
])("archives: %s", (_, selection, from, expected) => {
  const bare = { uses, all: false, sessions: false, archives: true, logsBefore: 3 };
  const { archives } = select({ ...inventory, ...from }, { ...bare, ...selection }, sizes);
  expect(archives.map((id) => layers[id - 1])).toEqual([...expected]);
});

test("the layers of a superseded build that a tagged image needs stay", () => {
  const images = inventory.images.map((each) => (each.uuid === "old2" ? { ...each, tags: ["old:1"] } : each));
  expect(outcome({}, { images })).toBe("lone; lone; file; cache; early");
});

test.each<[string, Disk, usedBytes: number, kept: number]>([
  [
    "a disk that is nearly full of the engine's data: down to a fifth of free space",
    { bytes: 100, freeBytes: 5 },
    90,
    75,
  ],
  [
    "a disk that is nearly full of other data: a tenth of the disk stays",
    { bytes: 100, freeBytes: 1 },
    15,
    10,
  ],
  ["less than that is never removed", { bytes: 100, freeBytes: 0 }, 8, 10],
  ["a disk with enough space: everything", { bytes: 100, freeBytes: 20 }, 70, 70],
])("%s", (_, disk, usedBytes, kept) => {
  expect(bytesToKeep(disk, usedBytes)).toBe(kept);
  expect(needsRoom(disk)).toBe(disk.freeBytes < 20);
});

test("records with circular parents do not hang the selection", () => {
  const circle = [
    { id: 1, parent: 2, isImported: false },
    { id: 2, parent: 1, isImported: false },
  ];
  expect(outcome({ all: true }, { layers: circle, images: [image("base", "base", 1)] })).toStartWith(
    "base; ;",
  );
});
