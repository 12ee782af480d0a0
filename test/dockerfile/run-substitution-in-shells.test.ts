/** A line with its variables replaced prints the same in a real shell as the original line with the variables set. */
import { expect, test } from "bun:test";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expandRunLine } from "../../src/dockerfile/words/run-substitution.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { runs } from "../support/random.ts";

const values: Record<string, string> = {
  A: "1",
  B: "two words ",
  C: "",
  D: "x",
  STAR: "*",
  OPTION: "-n",
  PAIR: "A=V",
  KEYWORD: "fi",
  LETTERS: "OF",
  PATHS: "/usr/lib:a.b",
  TEXT: "it's",
  MARKS: '"$A" `b`; #c\\',
};

const cwd = join(temporaryDirectory(), "cwd");

test("a replaced line and the original have the same output and exit code", () => {
  let replacedLines = 0;
  fc.assert(
    fc.property(scripts(), (line) => {
      const replaced = expandRunLine(line, (name) => values[name], "\\");
      if (replaced === line) return;
      replacedLines++;
      expect([replaced, runShell(replaced)]).toEqual([replaced, runShell(line)]);
    }),
    { numRuns: runs(150) },
  );
  expect(replacedLines).toBeGreaterThan(runs(150) / 4);
});

/** Generates scripts, some of which are invalid in a POSIX shell. */
function scripts(): fc.Arbitrary<string> {
  const name = fc.constantFrom(...Object.keys(values), "UNSET");
  const operator = fc.constantFrom(":-x y", "-x", ":+$A", "+", "#*s", "%b*", "##*/", ":-'$A'", ":=2");
  const reference = fc.oneof(
    { weight: 4, arbitrary: name.map((of) => `$${of}`) },
    { weight: 3, arbitrary: name.map((of) => `\${${of}}`) },
    { weight: 1, arbitrary: fc.tuple(name, operator).map(([of, how]) => `\${${of}${how}}`) },
  );
  const text = fc.constantFrom(..."a E 1 . / - = : ~ { } , [ ] ! # % \\$A \\\\ '$A' \"it's\"".split(" "));
  const { script } = fc.letrec<Record<"script" | "command" | "word" | "words" | "inner", string>>((tie) => ({
    word: fc
      .array(fc.oneof(reference, text, tie("inner")), { minLength: 1, maxLength: 3 })
      .map((parts) => parts.join("")),
    words: fc.array(tie("word"), { maxLength: 3 }).map((words) => words.join(" ")),
    inner: fc.oneof(
      { maxDepth: 3, depthSize: "small" },
      fc.tuple(reference, reference).map(([one, two]) => `"${one} ${two}'"`),
      fc.tuple(reference, reference).map(([one, two]) => `'${one} ${two}"'`),
      name.map((of) => `$((\${${of}} + 1))`),
      tie("script").map((script) => `$(${script})`),
      tie("script").map((script) => `"$(${script})"`),
      tie("words").map((words) => `\`echo ${words}\``),
    ),
    command: fc.oneof(
      { maxDepth: 3, depthSize: "small" },
      tie("words").map((words) => `printf '[%s]' ${words}`),
      fc.tuple(tie("words"), tie("word")).map(([words, word]) => `echo ${words} >f${word}`),
      fc.tuple(tie("words"), reference).map(([words, of]) => `echo ${words} ${of}>&2`),
      fc.tuple(name, tie("word")).map(([of, word]) => `${of}=${word}`),
      fc.tuple(fc.constantFrom("export", "unset", "readonly", "read"), name).map((words) => words.join(" ")),
      tie("words"),
      fc
        .tuple(name, tie("words"), tie("command"))
        .map(([of, words, body]) => `for ${of} in ${words}; do ${body}; done`),
      fc
        .tuple(tie("word"), tie("word"), tie("command"))
        .map(([word, pattern, body]) => `case ${word} in ${pattern}) ${body};; (*) echo other;; esac`),
      tie("command").map((body) => `if ${body}; then ${body}; fi`),
      tie("command").map((body) => `( ${body} )`),
      tie("command").map((body) => `{ ${body}; }`),
      // By its length, no function has the name of one inside it: none ever calls itself.
      tie("command").map((body) => `f${body.length}() { ${body}; }; f${body.length}`),
      tie("words").map((words) => `IFS=1; echo ${words}`),
      tie("words").map((words) => `eval A=5; echo \\\n${words}`),
      fc
        .tuple(fc.constantFrom("EOF", "'EOF'", "-EOF"), tie("words"), tie("words"))
        .map(([mark, one, two]) => `cat <<${mark}\n${one}\n\tE${two}\nEOF\n:`),
    ),
    script: fc
      .array(
        fc.tuple(tie("command"), fc.constantFrom("; ", "\n", " && ", " || ", " | cat; ", " # it's $A\n")),
        {
          minLength: 1,
          maxLength: 3,
        },
      )
      .map((commands) => commands.flat().slice(0, -1).join("")),
  }));
  return script;
}

function runShell(line: string) {
  // A redirection may have made a file, which `*` would find.
  rmSync(cwd, { recursive: true, force: true });
  mkdirSync(cwd);
  const { exitCode, stdout } = Bun.spawnSync(["sh", "-c", line], {
    env: { ...values, PATH: "/usr/bin:/bin" },
    cwd,
    stdin: "ignore",
    stderr: "ignore",
    timeout: 20_000,
    killSignal: "SIGKILL",
  });
  return { exitCode, output: stdout.toString() };
}
