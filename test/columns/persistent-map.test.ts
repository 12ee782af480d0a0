/** Compares the persistent map with plain maps: changes to one version never change another. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { extend, PersistentMap } from "../../src/columns/persistent-map.ts";

type Version = { map: PersistentMap<number>; model: ReadonlyMap<string, number> };

const name = fc.constantFrom("/a", "/a/b", "/a/b/c", "/a/bc", "/b", "/b/c", "/c", "d");
const change = fc.record({
  /** The version to start from, counted back from the newest. */
  back: fc.nat(5),
  additions: fc.array(fc.tuple(name, fc.nat()), { maxLength: 4 }),
  cut: fc.option(name, { freq: 4 }),
});

function apply({ map, model }: Version, additions: [string, number][], cut: string | null): Version {
  const next = new Map(model);
  for (const [key, value] of additions) next.set(key, value);
  const changed = extend(map, additions);
  if (cut === null) return { map: changed, model: next };
  for (const key of next.keys()) if (key.startsWith(`${cut}/`)) next.delete(key);
  return { map: changed.without((key) => key.startsWith(`${cut}/`)), model: next };
}

/** Returns how often `action` sets an entry of a plain map. */
function countSets(action: () => void): number {
  let sets = 0;
  const { set } = Map.prototype;
  Map.prototype.set = function (key, value) {
    sets++;
    return set.call(this, key, value);
  };
  try {
    action();
  } finally {
    Map.prototype.set = set;
  }
  return sets;
}

test("adding a large map to a small one, or removing entries, copies each entry once", () => {
  const large = new Map(Array.from({ length: 5000 }, (_, index) => [`/large/${index}`, index]));
  const small = PersistentMap.of(new Map([["/small", -1]]));
  expect(countSets(() => small.with(large))).toBe(5001);
  const both = small.with(large);
  expect([...both]).toEqual([["/small", -1], ...large]);
  expect(countSets(() => both.without((key) => key.endsWith("0")))).toBe(4501);
});

test("every version equals a copied map: the same entries, order and paths below a path", () => {
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), fc.boolean(), (changes, iteratesBetween) => {
      const versions: Version[] = [{ map: PersistentMap.of(new Map()), model: new Map() }];
      for (const { back, additions, cut } of changes) {
        const from = versions[Math.max(0, versions.length - 1 - back)];
        if (from === undefined) throw new Error("there is always a first version");
        // Iterating changes only how a version is stored.
        if (iteratesBetween) Array.from(from.map);
        versions.push(apply(from, additions, cut));
      }
      for (const { map, model } of versions) {
        for (const key of ["/a", "/a/b", "/a/b/c", "/b", "/c", "d", "/none"]) {
          expect(map.get(key)).toBe(model.get(key) as number);
          expect(map.has(key)).toBe(model.has(key));
          expect(map.hasBelow(key)).toBe([...model.keys()].some((other) => other.startsWith(`${key}/`)));
        }
        expect(map.size).toBe(model.size);
        expect([...map]).toEqual([...model]);
        expect([...map.keys()]).toEqual([...model.keys()]);
        expect([...map.values()]).toEqual([...model.values()]);
      }
    }),
  );
});

describe("the cost of a change does not grow with the map", () => {
  const grow = (count: number) => {
    let map = PersistentMap.of<number>(new Map());
    for (let index = 0; index < count; index++) map = map.with(new Map([[`k${index}`, index]]));
    return map;
  };

  test("when entries are added one by one", () => {
    // The average is the logarithm of the size; copying the map each time would be 50,000,000 sets.
    expect(countSets(() => grow(10_000))).toBeLessThan(10_000 * 100);
  });

  test("when many versions are made from the same one", () => {
    const base = grow(10_000);
    const sets = countSets(() => {
      for (let index = 0; index < 10_000; index++) base.with(new Map([["more", index]]));
    });
    expect(sets).toBeLessThan(10_000 * 200);
  });
});
