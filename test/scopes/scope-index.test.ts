/** An index as a value: what is written is what is read, what two have is merged, and what nobody uses goes. */
import { describe, expect, test } from "bun:test";
import { decodeIndex, decodeSteps, encodeIndex } from "../../src/builder/scopes/index-file.ts";
import {
  type Entry,
  emptyIndex,
  mergeIndexes,
  pruneIndex,
  type ScopeIndex,
} from "../../src/builder/scopes/scope-index.ts";

const day = 24 * 3600 * 1000;
const now = 1_800_000_000_000;
const hashOf = (number: number) => number.toString(16).padStart(64, "0");
const layer = (image: string, entry: Partial<Entry<"layers">> = {}): Entry<"layers"> => ({
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
const indexOf = (layers: Record<string, Entry<"layers">>): ScopeIndex => ({
  ...emptyIndex(),
  layers: new Map(Object.entries(layers)),
});

test("what is written is what is read, characters of all kinds included", () => {
  const index = emptyIndex();
  index.layers.set(hashOf(1), layer("image-1", { title: 'RUN echo "é\n\u2028"', bytes: null, by: null }));
  index.copies.set(hashOf(2), { place: hashOf(3), source: "image-2", layer: hashOf(1), usedAt: now });
  index.contents.set("image-2\n[]", { sources: "[]", usedAt: now });
  index.urls.set("https://host.test/f", {
    ...{ etag: '"1"', lastModified: null, contentMd5: null, sha256: hashOf(4), size: 0, usedAt: now },
  });
  index.facts.set("image-2\ndirectory /app", { answer: "no", usedAt: now });
  index.steps.set("Dockerfile\nRUN make", {
    ordinal: 0,
    hash: hashOf(1),
    title: "RUN make",
    inputs: "{}",
    usedAt: now,
  });
  const header = { scope: "main", by: "0.1.0", at: now, merged: ["image-9"] };
  const files = encodeIndex(index, header);
  const decoded = decodeIndex(files.index, "main");
  expect(decoded).toMatchObject({ header, index: { ...index, steps: new Map() }, isSigned: false });
  decodeSteps(files.steps, decoded);
  expect(decoded.index).toEqual(index);
});

describe("of two entries for one layer", () => {
  test.each<[string, Entry<"layers">, Entry<"layers">, Partial<Entry<"layers">>]>([
    [
      "that made later counts",
      layer("new", { madeAt: now }),
      layer("old", { madeAt: now - 1 }),
      { image: "new" },
    ],
    [
      "of one image the maker's counts, used when either was",
      layer("one", { by: null, seconds: null, usedAt: now + 5 }),
      layer("one", { madeAt: now - 1 }),
      { image: "one", seconds: 2.5, madeAt: now - 1, usedAt: now + 5 },
    ],
    ["made at one time, it is the same one in every order", layer("a"), layer("b"), { image: "b" }],
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

describe("what goes", () => {
  const none = new Set<string>();
  test("what nobody has used for 90 days, and copies of layers that are gone", () => {
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

  test("of more than 10,000 layers those that were used longest ago", () => {
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

  test("of texts those that are too much together", () => {
    const index = emptyIndex();
    for (let number = 0; number < 20; number++)
      index.contents.set(String(number), { sources: "x".repeat(256 * 1024), usedAt: now - number });
    expect([...pruneIndex(index, now, none).contents.keys()]).toEqual(
      Array.from({ length: 15 }, (_, number) => String(number)),
    );
  });

  test("nothing for a clock that was ahead", () => {
    const pruned = pruneIndex(
      indexOf({ [hashOf(1)]: layer("image", { usedAt: now + 400 * day }) }),
      now,
      none,
    );
    expect(pruned.layers.get(hashOf(1))?.usedAt).toBe(now);
  });
});
