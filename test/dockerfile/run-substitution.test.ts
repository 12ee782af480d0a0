/** The table is test/cases/words/run-line.txt. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expandExecWords, expandRunLine } from "../../src/dockerfile/words/run-substitution.ts";
import { BoughError } from "../../src/errors.ts";
import { runs } from "../support/random.ts";

interface Row {
  line: string;
  expected: string;
}

const { rows, values } = readTable();
const lookup = (name: string) => values.get(name);

describe("a RUN line", () => {
  test.each(rows.map(({ line, expected }) => [line, expected]))("%s => %s", (line, expected) => {
    expect(expandRunLine(line, lookup, "\\")).toBe(expected);
  });
});

describe("a shell with the variables prints the same for the replaced line", () => {
  test.each(rows.filter(({ line, expected }) => line !== expected))("$line", ({ line, expected }) => {
    expect(runShell(expected)).toEqual(runShell(line));
  });
});

test("replaces bash's `${V/a/b}`, which other shells lack, but not forms on which shells differ", () => {
  const expand = (line: string) => expandRunLine(line, lookup, "\\");
  expect(expand("echo ${V/./-} ${V//./_} ${V/rc1}")).toBe("echo 1-2.3-rc1 1_2_3-rc1 1.2.3-");
  expect(expand("echo ${V/#1/x} ${V/%1/x} ${V/1/&} ${V:0:3} ${V^^} ${!V}")).toBe(
    "echo ${V/#1/x} ${V/%1/x} ${V/1/&} ${V:0:3} ${V^^} ${!V}",
  );
});

test("a variable after the file's escape character is left to the shell", () => {
  expect(expandRunLine("echo `$A $A", lookup, "`")).toBe("echo `$A 1");
});

test("refuses a line that is too long after replacement", () => {
  expect(() => expandRunLine("$A ".repeat(100), () => "x".repeat(100_000), "\\")).toThrow(
    new BoughError("the command line is too long once its variables are replaced"),
  );
});

test("a deeply nested line is left to the shell", () => {
  const line = `${"$(echo ".repeat(20_000)}$A${")".repeat(20_000)}`;
  expect(expandRunLine(line, lookup, "\\")).toBe(line);
});

test("without declared names any line stays unchanged", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(..."ab $(){}'\"\\`<>;&|#\n=") }), (line) => {
      expect(expandRunLine(line, () => undefined, "\\")).toBe(line);
    }),
    { numRuns: runs(100) },
  );
});

describe("the words of an exec form", () => {
  const cases: [string, string[], string[]][] = [
    ["variables are replaced", ["echo", "$A", "${NAME}-$V"], ["echo", "1", "app-1.2.3-rc1"]],
    ["unknown names are empty", ["echo", "[$UNKNOWN]", "[${UNKNOWN}]"], ["echo", "[]", "[]"]],
    [
      "a value with spaces and quotes stays one word",
      ["echo", "$QUOTE;$MSG"],
      ["echo", 'say "hi";hello world'],
    ],
    ["quotes and backslashes stay", ["sed", "s/\\./'\"/", "\\$A"], ["sed", "s/\\./'\"/", "\\$A"]],
    [
      "a $ without a variable name stays",
      ["awk", "{ print $1, $$ }", "$", "${"],
      ["awk", "{ print $1, $$ }", "$", "${"],
    ],
    ["operators work with declared names", ["echo", "${A:-x}", "${EMPTY:-x}"], ["echo", "1", "x"]],
    [
      "the script of a shell is replaced as a shell form",
      ["/bin/bash", "-exc", "for i in $A; do echo $i '$A'; done", "$A"],
      ["/bin/bash", "-exc", "for i in 1; do echo $i '$A'; done", "1"],
    ],
    ["a shell without -c has no script", ["sh", "$A.sh"], ["sh", "1.sh"]],
  ];
  test.each(cases)("%s", (_, words, expected) => {
    expect(expandExecWords(words, lookup, "\\")).toEqual(expected);
  });
});

function runShell(line: string) {
  const { exitCode, stdout } = Bun.spawnSync(["sh", "-c", line], {
    env: { ...Object.fromEntries(values), PATH: "/usr/bin:/bin" },
    // `*` always expands to the same names in this directory.
    cwd: import.meta.dir,
    stdin: "ignore",
    stderr: "ignore",
  });
  return { exitCode, output: stdout.toString() };
}

function readTable(): { rows: Row[]; values: ReadonlyMap<string, string> } {
  const values = new Map<string, string>();
  const rows: Row[] = [];
  const text = readFileSync(join(import.meta.dir, "../cases/words/run-line.txt"), "utf8");
  for (const line of text.split("\n")) {
    const [, name, value] = /^set (\w+)=(.*)$/.exec(line) ?? [];
    const [, input, outcome] = /^(.*?) => (.*)$/.exec(line) ?? [];
    if (name !== undefined) values.set(name, value ?? "");
    else if (input !== undefined && outcome !== undefined) {
      const written = input.replaceAll("⏎", "\n");
      rows.push({ line: written, expected: outcome === "left" ? written : outcome.replaceAll("⏎", "\n") });
    }
  }
  return { rows, values };
}
