/** Tables of input and outcome in test/cases/words: `set NAME=value`, then `input => [word] ...` or `input => ! message`. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { lex } from "../../src/dockerfile/text/lexer.ts";
import { expandHeredoc, expandWord, type Lookup } from "../../src/dockerfile/words/words.ts";
import { BoughError } from "../../src/errors.ts";
import { runs } from "../support/random.ts";

/** Splits a text as the lexer does. */
const splitWords = (text: string, lookup: Lookup, escape: string) => lex(text, lookup, { escape }).words;

const tables: Readonly<Record<string, (text: string, lookup: Lookup) => string[]>> = {
  "word.txt": (text, lookup) => [expandWord(text, lookup, "\\")],
  "backtick.txt": (text, lookup) => [expandWord(text, lookup, "`")],
  "words.txt": (text, lookup) => splitWords(text, lookup, "\\"),
  "heredoc.txt": (text, lookup) => [expandHeredoc(text, lookup, "\\")],
};

describe.each(Object.entries(tables))("%s", (file, expand) => {
  test.each(readTable(file))("%s => %s", (text, outcome, values) => {
    const lookup: Lookup = (name) => values.get(name);
    if (outcome.startsWith("! ")) expect(() => expand(text, lookup)).toThrow(outcome.slice(2));
    else
      expect(
        expand(text, lookup)
          .map((word) => `[${word}]`)
          .join(" "),
      ).toBe(outcome);
  });
});

test("an error quotes the word with its control characters escaped", () => {
  expect(() => expandWord("\u001b[2J${}", () => undefined, "\\")).toThrow(
    new BoughError('failed to process "\\x1b[2J${}": syntax error: bad substitution'),
  );
});

test("refuses substitutions nested more than 100 deep", () => {
  const nested = (depth: number) => `${"${a:-".repeat(depth)}x${"}".repeat(depth)}`;
  expect(expandWord(nested(100), () => undefined, "\\")).toBe("x");
  expect(() => expandWord(nested(101), () => undefined, "\\")).toThrow("nested more than 100 deep");
  expect(() => expandWord("${a:-".repeat(100_000), () => undefined, "\\")).toThrow(BoughError);
});

test("refuses values that grow without limit by doubling", () => {
  const values = new Map([["V", "x"]]);
  const double = () =>
    values.set(
      "V",
      expandWord("$V$V", (name) => values.get(name), "\\"),
    );
  expect(() => {
    for (let round = 0; round < 64; round++) double();
  }).toThrow("the result is too long");
  expect(() => expandWord("${V//?/$V}", () => "x".repeat(100_000), "\\")).toThrow("the result is too long");
});

test("a pattern that takes a backtracking matcher exponential time is matched quickly", () => {
  const lookup = () => "a".repeat(20_000);
  expect(expandWord("${V##*a*a*a*a*a*a*a*a*a*b}", lookup, "\\")).toHaveLength(20_000);
  expect(expandWord("${V%%*a*a*a*a*a*a*a*a*a*b}", lookup, "\\")).toHaveLength(20_000);
  expect(expandWord("${V//*a*a*a*a*a*a*a*a*a*b/x}", lookup, "\\")).toHaveLength(20_000);
});

describe("on any text", () => {
  const piece = fc.constantFrom(
    ..."$ ${ } ' \" \\ ` : - + ? # % / * a b A B 1 @".split(" "),
    " ",
    "${A",
    "${B:-",
    "${A//",
    "한",
  );
  const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(""));
  const values = fc.record({ A: text, B: text });
  const escapeCharacter = fc.constantFrom("\\", "`");

  test("expansion ends with words or with a BoughError", () => {
    fc.assert(
      fc.property(text, values, escapeCharacter, (word, record, escaped) => {
        const lookup: Lookup = (name) => new Map(Object.entries(record)).get(name);
        for (const expand of [expandWord, splitWords, expandHeredoc]) {
          try {
            expand(word, lookup, escaped);
          } catch (error) {
            expect(error).toBeInstanceOf(BoughError);
          }
        }
      }),
      { numRuns: runs(1000) },
    );
  });

  test("the split words are the expanded text without its unquoted white space", () => {
    fc.assert(
      fc.property(text, values, escapeCharacter, (word, record, escaped) => {
        const lookup: Lookup = (name) => new Map(Object.entries(record)).get(name);
        const squeeze = (spaced: string) => spaced.replace(/ /g, "");
        let whole: string;
        try {
          whole = expandWord(word, lookup, escaped);
        } catch {
          return;
        }
        expect(squeeze(splitWords(word, lookup, escaped).join(""))).toBe(squeeze(whole));
      }),
      { numRuns: runs(1000) },
    );
  });

  test("text in single quotes stays unchanged", () => {
    fc.assert(
      fc.property(fc.string(), (string) => {
        const plain = string.replaceAll("'", "");
        expect(expandWord(`'${plain}'`, () => "value", "\\")).toBe(plain);
      }),
      { numRuns: runs(100) },
    );
  });
});

function readTable(file: string): [text: string, outcome: string, values: ReadonlyMap<string, string>][] {
  const values = new Map<string, string>();
  const rows: [string, string, ReadonlyMap<string, string>][] = [];
  for (const line of readFileSync(join(import.meta.dir, "../cases/words", file), "utf8").split("\n")) {
    if (line === "" || line.startsWith("# ")) continue;
    const [, name, value] = /^set (\w+)=(.*)$/.exec(line) ?? [];
    if (name !== undefined) {
      values.set(name, value ?? "");
      continue;
    }
    const [, text = "", outcome = ""] = /^(.*?) +=>(?: (.*))?$/.exec(line) ?? [];
    rows.push([text, outcome, new Map(values)]);
  }
  return rows;
}
