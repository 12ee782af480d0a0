/** Dockerfiles in other encodings than UTF-8. `\xe9` is one byte of each: an e with an accent in Latin-1. */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";
import { decodeDockerfile } from "../../src/dockerfile/text/decode.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";

const parse = (text: string) => parseDockerfile(decodeDockerfile(Buffer.from(text, "latin1")), "Dockerfile");

describe("is replaced, with a warning:", () => {
  test.each([
    ["a command", "FROM a\nRUN echo caf\xe9\n", 2, "RUN echo caf\ufffd"],
    ["a variable", "FROM a\nENV A=\xe9\n", 2, "ENV A=\ufffd"],
    ["a continued line", "FROM a\nRUN true && \\\n  echo \xe9\n", 3, "RUN true && echo \ufffd"],
    ["a here-document", "FROM a\nCOPY <<E /f\n# \xe9\nE\n", 3, "COPY <<E /f"],
    ["a line below a comment", "FROM a\nRUN true \\\n# \xe9\n \xe9\n", 4, "RUN true \ufffd"],
    ["a trigger", "FROM a\nONBUILD LABEL a=\xe9\n", 2, "ONBUILD LABEL a=\ufffd"],
    ["MAINTAINER", "FROM a\nMAINTAINER Ren\xe9\n", 2, "MAINTAINER Ren\ufffd"],
  ])("%s", (_, text, line, title) => {
    const { warnings, instructions } = parse(text);
    expect(warnings.map(({ rule, range }) => [rule, range.start])).toEqual([["NotUtf8", line]]);
    expect(instructions.at(-1)?.title).toBe(title);
  });
});

test("no mark of the decoder is left", () => {
  const text = "# check=skip=\xe9\nFROM a\nRUN <<E\xe9\necho \xe9\nE\xe9\nRUN a \\\n\n \xe9\n";
  const parsed = parse(text);
  const isWellFormed = (value: unknown): boolean =>
    typeof value === "string"
      ? value.isWellFormed()
      : typeof value !== "object" || value === null || Object.values(value).every(isWellFormed);
  expect(isWellFormed(parsed)).toBe(true);
  expect(parsed.warnings.map(({ rule, range }) => [rule, range.start])).toEqual([
    ["NotUtf8", 3],
    ["NoEmptyContinuation", 7],
    ["NotUtf8", 8],
  ]);
});

test.each([
  ["a file", ["--dockerfile", "latin", "."]],
  ["a Dockerfile alone", ["-"]],
])("build --check warns of %s", async (_, words) => {
  const home = temporaryDirectory();
  const bytes = Buffer.from("FROM a\nRUN \xe9\n", "latin1");
  writeFileSync(join(home, "latin"), bytes);
  const options = { workingDirectory: home, environment: { BOUGH_HOME: join(home, "state") }, stdin: bytes };
  const { exitCode, stdout } = await runBough(["build", "--check", ...words], options);
  expect(stdout).toContain("NotUtf8");
  expect(stdout).toContain(":2");
  expect(exitCode).toBe(0);
});

describe("is accepted without a warning:", () => {
  test.each([
    ["a comment", "# \xe9\nFROM a\n", ["FROM a"]],
    [
      "a comment in an instruction",
      "FROM a\nRUN true \\\n# \xe9\n  && false\n",
      ["FROM a", "RUN true && false"],
    ],
  ])("%s", (_, text, titles) => {
    const { instructions, lines, warnings } = parse(text);
    expect(warnings).toEqual([]);
    expect(instructions.map(({ title }) => title)).toEqual(titles);
    expect(lines.join("").isWellFormed()).toBe(true);
  });

  test("U+FFFD itself", () => {
    const text = "FROM a\nRUN echo \ufffd\n";
    expect(decodeDockerfile(Buffer.from(text))).toBe(text);
  });
});
