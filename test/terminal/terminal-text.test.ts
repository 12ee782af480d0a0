import { expect, test } from "bun:test";
import fc from "fast-check";
import { appendOutput, emptyTail, tailRows } from "../../src/terminal/output/held-output.ts";
import { formatLogLines, sanitizeLines, sanitizeRow } from "../../src/terminal/terminal-text.ts";
import { runs } from "../support/random.ts";

test.each([
  ["plain text stays", "a\tb\nc\n", "a\tb\nc\n"],
  ["colours stay, and end with the line", "\u001b[31mred\nnot", "\u001b[31mred\u001b[0m\nnot"],
  ["cursor movements are removed", "a\u001b[2J\u001b[10;3Hb\u001b[1Ac", "abc"],
  ["titles and links are removed", "\u001b]0;title\u0007a\u001b]8;;http://x\u001b\\b", "ab"],
  ["an unfinished sequence ends with its line", "a\u001b]0;never\nb\u001b[12\nc", "a\nb\nc"],
  ["other control characters are removed", "a\u0007\u009bb", "ab"],
  ["the last of several overwritten texts stays", "10 %\r20 %\r100 %\r\ndone\r\n", "100 %\ndone\n"],
  ["a backspace goes back by one character", "abc\b\b\bxyz\n", "xyz\n"],
  ["a backspace does not go beyond the line's beginning", "a\n\b\bb", "a\nb"],
  ["a backspace erases nothing", "abc\b\bx\n100 %\b\b\b\b\b", "axc\n100 %"],
  ["a percentage that is drawn with backspaces", "disk:  5 %\b\b\b\b10 %\b\b\b\b15 %", "disk: 15 %"],
  ["a spinner, in colours", "wait \u001b[31m|\u001b[0m\b/\b-\b ok", "wait  ok"],
  ["bold by overstriking, as on printers", "b\bbo\bol\bld\bd _\bu", "bold u"],
  ["backspaces over wide characters", "日本\b\b\b\bab", "ab本"],
  ["backspaces after a tab", "a\tb\b\bX", "a      Xb"],
  ["backspaces after a carriage return", "10 %\r20 %\b\b\b\b30 %", "30 %"],
])("log lines on a terminal: %s", (_, text, expected) => expect(sanitizeLines(text, true)).toBe(expected));

test.each([
  [
    "a line is wrapped between words",
    "[ERROR] there is no image of that name",
    "[ERROR] there is no\nimage of that name",
  ],
  [
    "a command in backticks stays whole",
    "[INFO] say `bough ps -a` or wait",
    "[INFO] say\n`bough ps -a` or\nwait",
  ],
  [
    "a command that is wider than the terminal stays whole",
    "or `bough -S build:1 shell`",
    "or\n`bough -S build:1 shell`",
  ],
  [
    "a word that is wider than the terminal stays whole",
    "in /a/directory/of/a/user now",
    "in\n/a/directory/of/a/user\nnow",
  ],
  [
    "no row begins with a level that a line has within",
    "[ERROR] the answer: [INFO] tagged x",
    "[ERROR] the\nanswer: [INFO]\ntagged x",
  ],
  ["spaces between words stay", "RUN printf '%s  %s' a bb", "RUN printf '%s  %s'\na bb"],
  ["a backtick that nothing closes is a character", "a ` between many words", "a ` between many\nwords"],
  [
    "indented lines stay whole",
    "failed:\n  bough -S build:1 shell --x",
    "failed:\n  bough -S build:1 shell --x",
  ],
  [
    "JSON stays whole",
    '{"error":{"code": "usage", "hint": null}}',
    '{"error":{"code": "usage", "hint": null}}',
  ],
])("log lines on a terminal of 20 columns: %s", (_, text, expected) => {
  expect(formatLogLines(text, { isTerminal: true, hasColor: false, columns: 20 })).toBe(expected);
  expect(formatLogLines(text, { isTerminal: false, hasColor: false, columns: 20 })).toBe(text);
});

test("colours are removed if there are none", () => {
  expect(sanitizeLines("\u001b[1;31mred\u001b[0m", false)).toBe("red");
});

test("a row never contains a control character", () => {
  const text = fc.string({
    unit: fc.constantFrom(
      "\u001b",
      "[",
      "]",
      "P",
      "\r",
      "\b",
      "\u0007",
      "2",
      ";",
      "J",
      "m",
      "x",
      "\t",
      "\u202e",
      "\u009b",
    ),
  });
  fc.assert(
    fc.property(text, (line) => expect(sanitizeRow(line)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/)),
    { numRuns: runs(100) },
  );
});

test("the tail does not depend on how the output is divided into chunks", () => {
  const lines = fc.array(fc.string({ unit: fc.constantFrom("a", "日", " ", "\n", "\r") }));
  fc.assert(
    fc.property(lines, (chunks) => {
      const pieces = chunks.reduce((tail, text) => appendOutput(tail, { stream: "stdout", text }), emptyTail);
      const whole = appendOutput(emptyTail, { stream: "stdout", text: chunks.join("") });
      expect(tailRows(pieces, 8)).toEqual(tailRows(whole, 8));
    }),
    { numRuns: runs(100) },
  );
});

test("both streams are shown, each with its unfinished line", () => {
  let tail = appendOutput(emptyTail, { stream: "stdout", text: "one\ntw" });
  tail = appendOutput(tail, { stream: "stderr", text: "oops" });
  tail = appendOutput(tail, { stream: "stdout", text: "o\n\n" });
  expect(tailRows(tail, 8)).toEqual(["one", "two", "oops"]);
});
