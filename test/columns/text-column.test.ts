/** Compares columns of texts with arrays. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { lengthsOf, TextColumn } from "../../src/columns/text-column.ts";

/** Texts with characters of one, two and four bytes, with lone surrogates, which UTF-8 does not have, and long ones. */
const text = fc.oneof(
  fc.string({ unit: fc.constantFrom("a", "/", "é", "\u{1f600}", "\ud83d", "\ude00"), maxLength: 3 }),
  fc.string({ minLength: 20, maxLength: 60 }),
);
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
      for (let row = 0; row < other.length; row++) column.pushFrom(other, row);
      expect(first.map((text) => column.push(text)).at(0)).toBe(
        first.length > 0 ? first.length + 2 * second.length : undefined,
      );
      expect([...column]).toEqual([...first, ...second, ...second, ...first]);
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
