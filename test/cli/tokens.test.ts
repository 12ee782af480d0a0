import { expect, test } from "bun:test";
import { parseArgs } from "node:util";
import fc from "fast-check";
import { type OptionShape, tokenize } from "../../src/cli/command-line/tokens.ts";
import { runs } from "../support/random.ts";

const options: Record<string, OptionShape> = {
  tag: { type: "string" },
  timeout: { type: "string", short: "t" },
  quiet: { type: "boolean", short: "q" },
  help: { type: "boolean", short: "h" },
};

test.each(
  [
    ["build", ".", "--tag", "a:b", "--tag=c", "-t5", "-t", "5", "-qh", "-qt7", "-qht", "9"],
    ["--tag", "--quiet", "--tag", "--", "x"],
    ["a", "--", "-q", "--tag", "x"],
    ["-", "--tag=", "--=x", "---", "--a=b=c", "-=", "-q=1", "--==", "--=a=b", "--tag"],
  ].map((words) => [words] as const),
)("%j", (words) => expectSame([...words]));

test("any command line is read as parseArgs of node:util reads it", () => {
  const word = fc.oneof(
    fc.constantFrom(
      "--",
      "-",
      "--tag",
      "--tag=x",
      "-t",
      "-t1",
      "-q",
      "-qh",
      "-qt",
      "--quiet",
      "--unknown",
      "-x",
      "a",
    ),
    fc.string({ unit: fc.constantFrom("-", "=", "t", "q", "x", "a"), maxLength: 5 }),
  );
  fc.assert(fc.property(fc.array(word, { maxLength: 6 }), expectSame), { numRuns: runs(2000) });
});

function expectSame(words: string[]): void {
  const { tokens } = parseArgs({ args: words, options, strict: false, allowPositionals: true, tokens: true });
  expect(tokenize(words, options)).toEqual(tokens as ReturnType<typeof tokenize>);
}

test.each([
  [["-it"], ["--tty"]],
  [["-qti"], ["-q", "--tty"]],
  [
    ["-t", "5", "-it"],
    ["-t", "5", "--tty"],
  ],
  [["-itq"], ["--tty", "-q"]],
  // If what follows are no flags, each letter is a separate option.
  [["-it5"], ["-i", "-t5"]],
  [
    ["-i", "-t5"],
    ["-i", "-t5"],
  ],
])("a pair of letters in a word of flags is one option: %j", (words, meaning) => {
  const paired = { ...options, tty: { type: "boolean", pairs: ["it", "ti"] } } as const;
  const given = (line: readonly string[]) =>
    tokenize(line, paired).flatMap((token) =>
      token.kind === "option" ? [[token.name, token.value]] : [token.kind],
    );
  expect(given(words)).toEqual(given(meaning));
});
