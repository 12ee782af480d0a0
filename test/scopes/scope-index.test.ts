/** Indexes of scopes are encoded and decoded, merged and pruned. */
import { describe, expect, test } from "bun:test";
import { decodeIndex, decodeSteps, encodeScopeIndex } from "../../src/builder/scopes/index-file.ts";
import {
  emptyIndex,
  mergeIndexes,
  pruneIndex,
  type ScopeEntry,
  type ScopeIndex,
} from "../../src/builder/scopes/scope-index.ts";

const day = 24 * 3600 * 1000;
const now = 1_800_000_000_000;
const hashOf = (number: number) => number.toString(16).padStart(64, "0");
const layer = (image: string, entry: Partial<ScopeEntry<"layers">> = {}): ScopeEntry<"layers"> => ({
  ...{
    image,
    operation: "op",
    title: "RUN make",
    madeAt: now,
    usedAt: now,
    bytes: 1,
    seconds: 2.5,
    by: "0.1.0",
  },
  ...entry,
});
const indexOf = (layers: Record<string, ScopeEntry<"layers">>): ScopeIndex => ({
  ...emptyIndex(),
  layers: new Map(Object.entries(layers)),
});

test("decoding returns the index that was encoded, with all kinds of characters", () => {
  const index = emptyIndex();
  index.layers.set(hashOf(1), layer("image-1", { title: 'RUN echo "é\n\u2028"', bytes: null, by: null }));
  index.copies.set(hashOf(2), { place: hashOf(3), source: "image-2", layer: hashOf(1), usedAt: now });
  index.contents.set("image-2\n[]", { sources: "[]", usedAt: now });
  index.steps.set("Dockerfile\nRUN make", {
    ordinal: 0,
    hash: hashOf(1),
    title: "RUN make",
    inputs: "{}",
    usedAt: now,
  });
  const header = { scope: "main", by: "0.1.0", at: now, merged: ["image-9"] };
  const files = encodeScopeIndex(index, header);
  const decoded = decodeIndex(files.index, "main");
  expect(decoded).toMatchObject({ header, index: { ...index, steps: new Map() }, isSigned: false });
  decodeSteps(files.steps, decoded);
  expect(decoded.index).toEqual(index);
});

describe("merging two entries of one layer", () => {
  test.each<[string, ScopeEntry<"layers">, ScopeEntry<"layers">, Partial<ScopeEntry<"layers">>]>([
    [
      "keeps the image that was made later",
      layer("new", { madeAt: now }),
      layer("old", { madeAt: now - 1 }),
      { image: "new" },
    ],
    [
      "of the same image keeps the entry of the build that made it, and the later use",
      layer("one", { by: null, seconds: null, usedAt: now + 5 }),
      layer("one", { madeAt: now - 1 }),
      { image: "one", seconds: 2.5, madeAt: now - 1, usedAt: now + 5 },
    ],
    ["of the same time has the same result in every order", layer("a"), layer("b"), { image: "b" }],
  ])("%s", (_, one, other, expected) => {
    for (const [first, second] of [
      [one, other],
      [other, one],
    ] as const) {
      const merged = mergeIndexes(indexOf({ [hashOf(1)]: first }), indexOf({ [hashOf(1)]: second }));
      expect(merged.layers.get(hashOf(1))).toMatchObject(expected);
    }
  });
});

describe("pruning", () => {
  const none = new Set<string>();
  test("removes layers that are unused for 90 days or lost, and their copies", () => {
    const index = indexOf({
      [hashOf(1)]: layer("image-1", { usedAt: now - 89 * day }),
      [hashOf(2)]: layer("image-2", { usedAt: now - 91 * day }),
      [hashOf(3)]: layer("image-3"),
    });
    for (const number of [1, 2, 3])
      index.copies.set(hashOf(number + 10), {
        ...{ place: hashOf(9), source: "image", layer: hashOf(number), usedAt: now },
      });
    const pruned = pruneIndex(index, now, new Set(["image-3"]));
    expect([...pruned.layers.keys()]).toEqual([hashOf(1)]);
    expect([...pruned.copies.keys()]).toEqual([hashOf(11)]);
  });

  test("keeps the 10,000 layers that were used last", () => {
    const index = emptyIndex();
    for (let number = 0; number < 10_100; number++)
      index.layers.set(hashOf(number), layer(`image-${number}`, { usedAt: now - number }));
    const { layers } = pruneIndex(index, now, none);
    expect(layers.size).toBe(10_000);
    expect([layers.has(hashOf(0)), layers.has(hashOf(9999)), layers.has(hashOf(10_000))]).toEqual([
      true,
      true,
      false,
    ]);
  });

  test("keeps the texts that were used last, up to a total size", () => {
    const index = emptyIndex();
    for (let number = 0; number < 20; number++)
      index.contents.set(String(number), { sources: "x".repeat(256 * 1024), usedAt: now - number });
    expect([...pruneIndex(index, now, none).contents.keys()]).toEqual(
      Array.from({ length: 15 }, (_, number) => String(number)),
    );
  });

  test("sets times of use in the future to the present", () => {
    const pruned = pruneIndex(
      indexOf({ [hashOf(1)]: layer("image", { usedAt: now + 400 * day }) }),
      now,
      none,
    );
    expect(pruned.layers.get(hashOf(1))?.usedAt).toBe(now);
  });
});
