/** Compares columns of texts and maps of them with arrays and plain maps. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { lengthsOf, TextColumn } from "../../src/columns/text-column.ts";
import { TextMap } from "../../src/columns/text-map.ts";
import { ArrayColumn } from "../support/array-column.ts";

/** Texts with characters of one, two and four bytes, with lone surrogates, which UTF-8 does not have, and long ones. */
const text = fc.oneof(
  fc.string({ unit: fc.constantFrom("a", "/", "é", "\u{1f600}", "\ud83d", "\ude00"), maxLength: 3 }),
  fc.string({ minLength: 20, maxLength: 60 }),
);
const texts = fc.array(text, { maxLength: 60 });
const wellFormed = fc.array(
  text.map((each) => each.toWellFormed()),
  { maxLength: 60 },
);

test("a column returns its texts in order, also those copied from another column", () => {
  fc.assert(
    fc.property(wellFormed, wellFormed, (first, second) => {
      const column = TextColumn.of(first);
      expect([...column]).toEqual(first);
      const other = TextColumn.of(second);
      column.append(other.bytes, lengthsOf(other.ends));
      const copy = column.copy();
      for (let row = 0; row < other.length; row++) column.pushFrom(other, row);
      expect(first.map((text) => column.push(text)).at(0)).toBe(
        first.length > 0 ? first.length + 2 * second.length : undefined,
      );
      expect([...column]).toEqual([...first, ...second, ...second, ...first]);
      expect([...copy]).toEqual([...first, ...second]);
      column.clear();
      expect([column.length, column.bytes.length]).toEqual([0, 0]);
    }),
  );
});

test("a column of 5000 texts returns and hashes all of them", () => {
  const texts = Array.from({ length: 5000 }, (_, row) => `${row % 7 === 0 ? "é" : "e"}${row}`);
  const column = TextColumn.of(texts);
  expect([...column]).toEqual(texts);
  const digest = (all: Iterable<string>) => {
    const hasher = new Bun.CryptoHasher("sha256");
    TextColumn.of(all).addTo(hasher);
    return hasher.digest("hex");
  };
  expect(digest(column)).toBe(digest(texts));
  // The same bytes, split at another place.
  expect(digest([...texts, "a", "bc"])).not.toBe(digest([...texts, "ab", "c"]));
});

test("a column refuses lengths that do not match its bytes", () => {
  const { bytes } = TextColumn.of(["ab", "c"]);
  for (const lengths of [[2], [2, 2]])
    expect(() => new TextColumn().append(bytes, new Uint32Array(lengths))).toThrow("lengths");
});

test("a map of texts equals a plain map, and so does a copy of it after either has changed", () => {
  const changes = fc.array(fc.tuple(text, fc.nat()), { maxLength: 60 });
  fc.assert(
    fc.property(changes, changes, texts, (before, after, asked) => {
      const map = new TextMap<number>(new ArrayColumn());
      const model = new Map<string, number>();
      const set = (to: typeof map, [key, value]: [string, number]) => to.set(key, value);
      const compare = (one: typeof map) => {
        expect([...one]).toEqual([...model]);
        expect([...one.keys()]).toEqual([...model.keys()]);
        expect([...one.values()]).toEqual([...model.values()]);
        expect(one.size).toBe(model.size);
        const visited: [string, number][] = [];
        one.forEach((value, key) => {
          visited.push([key, value]);
        });
        expect(visited).toEqual([...model]);
        for (const key of [...asked, ...before.map(([each]) => each)]) {
          expect(one.get(key)).toBe(model.get(key.toWellFormed()) as number);
          expect(one.has(key)).toBe(model.has(key.toWellFormed()));
        }
      };
      for (const [key, value] of before) {
        map.set(key, value);
        model.set(key.toWellFormed(), value);
      }
      const copy = map.copy();
      for (const change of after) set(map, change);
      compare(copy);
      for (const change of after) {
        set(copy, change);
        model.set(change[0].toWellFormed(), change[1]);
      }
      compare(copy);
      compare(map);
    }),
  );
});
