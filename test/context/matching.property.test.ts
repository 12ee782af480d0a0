import { expect, test } from "bun:test";
import fc from "fast-check";
import { parseIgnoreFile } from "../../src/context/patterns/ignore.ts";
import {
  compileSourcePattern,
  enterDirectory,
  isMatched,
  patternStart,
} from "../../src/context/patterns/path-pattern.ts";
import { decidePath, isMatch } from "../../src/context/patterns/rules.ts";
import { runs } from "../support/random.ts";
import { isIgnored, referenceDecision, referenceGoMatch } from "./reference-matcher.ts";

/** Few and short names, so that patterns often match; some have special characters of regular expressions. */
const name = fc
  .array(fc.constantFrom("a", "b", "c", ".", "+", "(", "\n", "é", "-", "^", "[", "]", "[ab]", "[a]"), {
    minLength: 1,
    maxLength: 3,
  })
  .map((characters) => characters.join(""))
  .filter((text) => text !== "." && text !== "..");
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join("/"));

const piece = fc.constantFrom(
  ...["a", "b", "c", ".", "+", "(", "é", "-", "^", "/", "/", "*", "*", "**", "**/", "/**", "/**/", "?"],
  ...["[a]", "[ab]", "[^a]", "[a-c]", "[^b-c]", "[+-9]", "[\\]\\-^]", "[.(+]", "\\a", "\\*", "\\["],
);
const pattern = fc
  .array(piece, { minLength: 1, maxLength: 7 })
  .map((pieces) =>
    pieces
      .join("")
      .replace(/\/{2,}/g, "/")
      .replace(/^\/|\/$/g, ""),
  )
  .filter((text) => text !== "" && !text.split("/").some((part) => part === "." || part === ".."));
const line = fc.tuple(fc.constantFrom("", "", "!"), pattern).map((parts) => parts.join(""));

test("ignore rules decide as the reference matcher does", () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 6 }), path, (lines, path) => {
      const rules = parseIgnoreFile(lines.join("\n"), ".dockerignore");
      const { line, ignored } = referenceDecision(lines, path);
      const decision = decidePath(rules, path, "every");
      expect(decision?.origin).toEqual(
        line === 0 ? undefined : { kind: "file", path: ".dockerignore", line },
      );
      expect(isMatch(decision)).toBe(ignored);
    }),
    { numRuns: runs(5000) },
  );
});

test("a directory's rules count for what is in it as in BuildKit", () => {
  fc.assert(
    fc.property(fc.array(line, { maxLength: 6 }), path, (lines, path) => {
      const rules = parseIgnoreFile(lines.join("\n"), ".dockerignore");
      expect(isMatch(decidePath(rules, path, "effective"))).toBe(isIgnored(lines, path, "effective"));
    }),
    { numRuns: runs(5000) },
  );
});

test("source patterns match as Go's filepath.Match does", () => {
  fc.assert(
    fc.property(pattern, path, (pattern, path) => {
      const compiled = compileSourcePattern(pattern);
      const names = path.split("/");
      const last = names.pop() ?? "";
      const position = names.reduce((at, name) => enterDirectory(compiled, at, name), patternStart);
      expect(isMatched(compiled, position, last)).toBe(referenceGoMatch(pattern, path));
    }),
    { numRuns: runs(5000) },
  );
});
