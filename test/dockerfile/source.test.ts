import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";
import { Findings } from "../../src/dockerfile/problems/problem.ts";
import { type LogicalLine, SourceReader } from "../../src/dockerfile/text/source.ts";
import { BoughError } from "../../src/errors.ts";
import { runs } from "../support/random.ts";

function readSource(text: string) {
  const reader = new SourceReader(text, new Findings());
  const logicalLines: LogicalLine[] = [];
  for (let line = reader.nextLogicalLine(); line !== undefined; line = reader.nextLogicalLine())
    logicalLines.push(line);
  return { lines: reader.lines, logicalLines };
}

test("a place in a logical line is found in the file despite comments and indents", () => {
  const [, run] = readSource("FROM alpine\n\n  RUN one \\\n# comment\n\n   two \\\n\tthree\n").logicalLines;
  const place = (word: string) => run?.map.locate(run.text.indexOf(word), word.length);
  expect(run?.text).toBe("RUN one    two \tthree");
  expect(place("RUN")).toEqual({ line: 3, column: 3, length: 3 });
  expect(place("one")).toEqual({ line: 3, column: 7, length: 3 });
  expect(place("two")).toEqual({ line: 6, column: 4, length: 3 });
  expect(place("three")).toEqual({ line: 7, column: 2, length: 5 });
});

test("lines are kept without their line ends for messages", () => {
  expect(readSource("\ufeffFROM a\r\n\nRUN b\r\r\n# end").lines).toEqual(["FROM a", "", "RUN b", "# end"]);
});

describe("on any text", () => {
  const token = fc.constantFrom(
    ..."FROM RUN COPY ADD ENV ARG LABEL ONBUILD HEALTHCHECK SHELL CMD USER # # <<EOF <<-E EOF E --from= --x [ ] \" ' \\ ` $A".split(
      " ",
    ),
    ...' |\n|\\\n|\r\n|\t|\n\n|\u0000|\u001b|\u2028|\ud800|é|["a"]|a=b|# escape=`\n|FROM x\n'.split("|"),
  );
  const text = fc.array(token, { maxLength: 30 }).map((tokens) => tokens.join(""));

  test("parsing ends with instructions in order, or with a BoughError that a terminal can show", () => {
    fc.assert(
      fc.property(fc.oneof(text, fc.string({ unit: "binary" })), (any) => {
        try {
          const { instructions, lines } = parseDockerfile(any, "Dockerfile");
          let end = 0;
          for (const { range } of instructions) {
            expect(range.start).toBeGreaterThan(end);
            expect(range.end).toBeGreaterThanOrEqual(range.start);
            end = range.end;
          }
          expect(end).toBeLessThanOrEqual(lines.length);
        } catch (error) {
          expect(error).toBeInstanceOf(BoughError);
          expect(error instanceof Error && error.message).not.toMatch(/[\0-\x09\x0b-\x1f\x7f-\x9f\u2028]/);
        }
      }),
      { numRuns: runs(2000) },
    );
  });

  test("each physical line belongs to at most one logical line, and its words are located in it", () => {
    fc.assert(
      fc.property(text, (any) => {
        const { lines, logicalLines } = readSource(any);
        let end = 0;
        for (const line of logicalLines) {
          expect(line.range.start).toBeGreaterThan(end);
          end = line.range.end;
          for (const { index, 0: word } of line.text.matchAll(/[A-Z]+/g)) {
            const place = line.map.locate(index, word.length);
            expect(place.line).toBeWithin(line.range.start, line.range.end + 1);
            // A word that is split by a line continuation is located at its start.
            const found = (lines[place.line - 1] ?? "").slice(place.column - 1);
            expect(found.slice(0, place.length)).toBe(word.slice(0, place.length));
          }
        }
      }),
      { numRuns: runs(1000) },
    );
  });
});

test("instructions keep their text and line numbers in any layout over lines", () => {
  const filler = fc.constantFrom("", "# comment", "   # comment \\", "\t");
  const part = fc.constantFrom("one", " two", "three ", "\tfour", "fi've", "&& six");
  const instruction = fc.record({
    before: fc.array(filler, { maxLength: 3 }),
    indent: fc.constantFrom("", "  ", "\t"),
    parts: fc.array(fc.record({ part, between: fc.array(filler, { maxLength: 2 }) }), {
      minLength: 1,
      maxLength: 4,
    }),
    ending: fc.constantFrom("\\", "\\  ", "\\\t"),
  });
  fc.assert(
    fc.property(fc.array(instruction), fc.constantFrom("\n", "\r\n"), (instructions, lineEnd) => {
      const lines = ["FROM alpine"];
      const expected: { line: string; range: { start: number; end: number } }[] = [];
      for (const { before, indent, parts, ending } of instructions) {
        lines.push(...before);
        const start = lines.length + 1;
        for (const [index, { part, between }] of parts.entries()) {
          const isLast = index === parts.length - 1;
          lines.push(`${index === 0 ? `${indent}RUN ` : ""}${part}${isLast ? "" : ending}`);
          if (!isLast) lines.push(...between);
        }
        const line = parts
          .map(({ part }) => part)
          .join("")
          .trim();
        expected.push({ line, range: { start, end: lines.length } });
      }
      const parsed = parseDockerfile(lines.join(lineEnd), "Dockerfile");
      expect(parsed.lines).toEqual(lines);
      const found = parsed.instructions.flatMap((run) =>
        run.name === "RUN" && run.command.form === "shell"
          ? [{ line: run.command.line, range: run.range }]
          : [],
      );
      expect(found).toEqual(expected);
    }),
    { numRuns: runs(100) },
  );
});
