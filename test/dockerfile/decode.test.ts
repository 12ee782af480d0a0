/** Dockerfiles in other encodings than UTF-8. `\xe9` is one byte of each: an e with an accent in Latin-1. */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";
import { decodeDockerfile } from "../../src/dockerfile/text/decode.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";

const parse = (text: string) => parseDockerfile(decodeDockerfile(Buffer.from(text, "latin1")), "Dockerfile");

describe("is refused, with the place:", () => {
  test.each([
    [
      "a command",
      "FROM a\nRUN echo caf\xe9\n",
      "Dockerfile:2: the line is not UTF-8 text\n  2 | RUN echo caf\ufffd\n    |             ^\n",
    ],
    ["a variable", "FROM a\nENV A=\xe9\n", "Dockerfile:2: "],
    ["a continued line", "FROM a\nRUN true && \\\n  echo \xe9\n", "Dockerfile:3: "],
    ["a here-document", "FROM a\nCOPY <<E /f\n# \xe9\nE\n", "Dockerfile:3: "],
    ["a trigger", "FROM a\nONBUILD LABEL a=\xe9\n", "Dockerfile:2: "],
  ])("%s", (_, text, message) => {
    expect(() => parse(text)).toThrow(message);
  });
});

test.each([
  ["a file", ["--dockerfile", "latin", "."]],
  ["a Dockerfile alone", ["-"]],
])("build --check refuses %s", async (_, words) => {
  const home = temporaryDirectory();
  const bytes = Buffer.from("FROM a\nRUN \xe9\n", "latin1");
  writeFileSync(join(home, "latin"), bytes);
  const options = { workingDirectory: home, environment: { BOUGH_HOME: join(home, "state") }, stdin: bytes };
  const { exitCode, stdout, stderr } = await runBough(["build", "--check", ...words], options);
  expect(exitCode).toBe(2);
  expect(stdout + stderr).toContain(":2: the line is not UTF-8 text");
});

describe("is accepted, as BuildKit does:", () => {
  test.each([
    ["a comment", "# \xe9\nFROM a\n", ["FROM a"]],
    [
      "a comment in an instruction",
      "FROM a\nRUN true \\\n# \xe9\n  && false\n",
      ["FROM a", "RUN true && false"],
    ],
    ["MAINTAINER", "FROM a\nMAINTAINER Ren\xe9\n", ["FROM a", "MAINTAINER Ren\ufffd"]],
    ["LABEL", "FROM a\nlabel by=Ren\xe9\n", ["FROM a", "label by=Ren\ufffd"]],
  ])("%s", (_, text, titles) => {
    const { instructions, lines } = parse(text);
    expect(instructions.map(({ title }) => title)).toEqual(titles);
    expect(lines.join("").isWellFormed()).toBe(true);
  });

  test("U+FFFD itself", () => {
    const text = "FROM a\nRUN echo \ufffd\n";
    expect(decodeDockerfile(Buffer.from(text))).toBe(text);
  });
});
