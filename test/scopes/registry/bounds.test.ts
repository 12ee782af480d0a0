/** What an index outside a service forgets: what is unused for 90 days, and what is beyond `keep=`. */
import { expect, test } from "bun:test";
import { boundIndex, factKey } from "../../../src/builder/scopes/registry/bound-index.ts";
import { addPortableImage, type PortableLayer } from "../../../src/builder/scopes/registry/portable-image.ts";
import { emptyIndex } from "../../../src/builder/scopes/scope-index.ts";
import { digestOf } from "../../../src/image/digest.ts";
import { sha256Of } from "../../../src/sha256.ts";

const day = 24 * 3600 * 1000;
const now = 1_800_000_000_000;

const layerOf = (name: string, size: number): PortableLayer => {
  const digest = digestOf(name);
  return {
    mediaType: "application/vnd.oci.image.layer.v1.tar",
    digest,
    diffId: digest,
    size,
    createdAt: now,
  };
};
const base = layerOf("base", 100);
/** Only contents of cache mounts need blobs that the store has. */
const stored = new Set<string>();

/** Returns an index of steps on one base of 100 bytes, each a layer: its name, its bytes, and the days since its last use. */
function indexOf(steps: readonly Step[]) {
  const index = emptyIndex();
  for (const [name, bytes, days] of steps) {
    const usedAt = now - days * day;
    const layers = [base, layerOf(name, bytes)];
    const image = addPortableImage(index, { config: { User: name }, origin: {}, layers }, usedAt);
    const made = { image, operation: null, title: name, madeAt: usedAt, bytes, seconds: 1, by: null };
    index.layers.set(sha256Of(name), { ...made, usedAt });
    index.copies.set(sha256Of(`copy ${name}`), {
      place: sha256Of("place"),
      ...{ source: image, layer: sha256Of(name), usedAt },
    });
    const chain = index.images.get(image)?.chain ?? "";
    index.facts.set(factKey(chain, "file /etc/passwd"), { answer: "yes", usedAt });
  }
  return index;
}

type Step = [name: string, bytes: number, days: number];

test.each<[string, number | undefined, Step[], string[]]>([
  [
    "what is unused for 90 days",
    undefined,
    [
      ["new", 100, 0],
      ["older", 100, 89],
      ["old", 100, 91],
    ],
    ["new", "older"],
  ],
  [
    "what was used least recently, beyond the size; the base counts once",
    300,
    [
      ["last", 100, 3],
      ["first", 100, 1],
      ["second", 100, 2],
    ],
    ["first", "second"],
  ],
  [
    "a layer that is too large, and no smaller one",
    250,
    [
      ["large", 500, 0],
      ["small", 100, 1],
    ],
    ["small"],
  ],
  ["all, if not even a base fits", 50, [["new", 100, 0]], []],
  ["nothing, if all fits", 200, [["new", 100, 0]], ["new"]],
])("a cache forgets %s", (_, keepBytes, steps, kept) => {
  const bounded = boundIndex(indexOf(steps), { now, gone: new Set(), keepBytes, stored });
  expect([...bounded.layers.values()].map(({ title }) => title).sort()).toEqual(kept);
  // The base, and a layer each; two texts each, of which the origin is the same; and nothing else refers to what is forgotten.
  const isEmpty = kept.length === 0;
  expect(bounded.images.size).toBe(kept.length);
  expect(bounded.chains.size).toBe(isEmpty ? 0 : kept.length + 1);
  expect(bounded.texts.size).toBe(isEmpty ? 0 : kept.length + 1);
  expect([bounded.copies.size, bounded.facts.size]).toEqual([kept.length, kept.length]);
});

test("an image that nobody can have is forgotten, with its layer", () => {
  const index = indexOf([
    ["gone", 100, 0],
    ["new", 100, 0],
  ]);
  const gone = new Set([index.layers.get(sha256Of("gone"))?.image ?? ""]);
  const { layers, chains } = boundIndex(index, { now, gone, keepBytes: undefined, stored });
  expect([[...layers.keys()], chains.size]).toEqual([[sha256Of("new")], 2]);
});
