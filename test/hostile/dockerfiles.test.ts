/** Dockerfiles and ignore files made to cost time or memory: each build ends in bounded time, without an internal error. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { seededRandom } from "../support/random.ts";
import { controlCharacters } from "./tame.ts";

let context: string;
let service: FakeService;
beforeEach(async () => {
  context = temporaryDirectory();
  service = await startFakeService();
  service.state.addImage("base:1");
});
afterEach(async () => {
  await service.close();
});

/** A generous limit: the faults that it catches take minutes, or never end. */
const boundSeconds = 10;

async function build(dockerfile: string | Uint8Array, ...options: string[]) {
  writeFileSync(join(context, "Dockerfile"), dockerfile);
  const started = performance.now();
  const ended = await runBough(["--url", service.url, "build", ".", ...options], {
    workingDirectory: context,
    environment: { BOUGH_HOME: temporaryDirectory() },
  });
  expect((performance.now() - started) / 1000).toBeLessThan(boundSeconds);
  expect(ended.stderr).not.toContain("bough itself failed");
  expect(ended.stderr.length).toBeLessThan(1_000_000);
  return ended;
}

const megabyte = 1024 * 1024;

describe("refuses a Dockerfile that is too large:", () => {
  test.each<[string, () => string | Uint8Array]>([
    ["50 MiB of instructions", () => `FROM base:1\n${"RUN true\n".repeat((50 * megabyte) / 9)}`],
    ["one line of 50 MiB", () => `FROM base:1\nRUN echo ${"x".repeat(50 * megabyte)}`],
    ["50 MiB of zeros", () => new Uint8Array(50 * megabyte)],
    ["50 MiB of line ends", () => "\n".repeat(50 * megabyte)],
    ["50 MiB of continuations", () => `FROM base:1\nRUN ${"\\\n".repeat(25 * megabyte)}`],
  ])("%s", async (_, make) => {
    const { exitCode, stderr } = await build(make());
    expect(exitCode).toBe(2);
    expect(stderr.split("\n").length).toBeLessThan(100);
  });
});

describe("a Dockerfile that is not text brings no control characters into the output:", () => {
  const random = seededRandom(7);
  test.each<[string, () => Uint8Array]>([
    ["an executable", () => readFileSync("/bin/sh")],
    ["random bytes", () => Uint8Array.from({ length: 100_000 }, () => random() * 256)],
    ["UTF-16", () => Buffer.from("\ufeffFROM base:1\nRUN true\n", "utf16le")],
    ["a NUL in the middle", () => Buffer.from("FROM base:1\nRUN a\0b\n")],
    [
      "an incomplete character",
      () => Buffer.concat([Buffer.from("FROM base:1\nRUN echo "), Buffer.from([0xe2, 0x82])]),
    ],
  ])("%s", async (_, make) => {
    const { stderr, stdout } = await build(make());
    expect(controlCharacters(stderr + stdout)).toEqual([]);
  });
});

describe("words that nest, repeat and grow take bounded time:", () => {
  const deep = 200_000;
  test.each<[string, string]>([
    ["nested ${", `ENV A=${"${A:-".repeat(deep)}x${"}".repeat(deep)}`],
    ["${ that are never closed", `ENV A=${"${A:-".repeat(deep)}`],
    ["quotes that are never closed", `ENV A=${"\"'".repeat(deep)}`],
    ["backslashes", `ENV A=${"\\".repeat(deep)}`],
    ["a variable that doubles in every line", `ARG A=xxxxxxxxxx\n${"ENV A=$A$A\n".repeat(60)}`],
    [
      "a long variable many times in a RUN",
      `ARG A=xxxxxxxxxx\n${"ENV A=$A$A\n".repeat(14)}RUN echo ${"$A".repeat(5000)}`,
    ],
    [
      "a replacement in a variable that grows",
      `ARG A=aaaaaaaaaa\n${"ENV A=${A//a/aaaaaaaaaa}\n".repeat(30)}`,
    ],
    ["nested $( in a RUN", `RUN echo ${"$(echo ".repeat(20_000)}${")".repeat(20_000)}`],
    ["quotes in a RUN", `RUN echo ${"'\"".repeat(100_000)}`],
    [
      "here-documents in one line",
      `RUN ${Array.from({ length: 2000 }, (_, index) => `<<E${index}`).join(" ")}\n${Array.from({ length: 2000 }, (_, index) => `E${index}`).join("\n")}`,
    ],
    ["a here-document without an end", `RUN <<END\n${"echo\n".repeat(100_000)}`],
    ["brackets of an exec form", `RUN ${"[".repeat(100_000)}`],
    ["sources of a COPY", `COPY ${"a ".repeat(100_000)}/x/`],
    ["flags", `COPY ${"--chown=1 ".repeat(50_000)}a /x`],
    ["stages", `${"FROM base:1 AS a\n".repeat(2000)}`],
    [
      "pairs of an ENV",
      `ENV ${Array.from({ length: 50_000 }, (_, index) => `A${index}=$A${index - 1}x`).join(" ")}`,
    ],
  ])("%s", async (_, line) => {
    writeFiles(context, { a: "a" });
    await build(`FROM base:1\n${line}\n`);
    await build(`FROM base:1\n${line}\n`, "--check");
  });
});

describe("patterns that could backtrack for ever take bounded time:", () => {
  const name = "a".repeat(250);
  const patterns = [
    `${"*a".repeat(60)}b`,
    `${"a*".repeat(100)}b`,
    `${"?*".repeat(100)}b`,
    `${"**/".repeat(60)}*b`,
    `${"**".repeat(200)}b`,
    `${"[a-z]*".repeat(40)}0`,
    `${"*".repeat(5000)}b`,
    `(${"a+".repeat(30)})+b`,
    `{${"a,".repeat(5000)}b}`,
    `${"@(a|a)".repeat(30)}b`,
    `${"[!".repeat(1000)}`,
  ];

  beforeEach(() => {
    const deep = Array.from({ length: 12 }, () => "aaaaaaaaaa").join("/");
    writeFiles(context, { [name]: "x", [`${deep}/${name}`]: "x", b: "x" });
  });

  test.each(
    patterns.map((pattern) => [pattern.length > 30 ? `${pattern.slice(0, 30)}...` : pattern, pattern]),
  )(
    "%s",
    async (_, pattern) => {
      writeFileSync(join(context, ".dockerignore"), `${pattern}\n!${pattern}\n`);
      await build(`FROM base:1\nCOPY . /x/\nRUN true\n`);
      await build(`FROM base:1\nCOPY --exclude=${pattern} . /x/\nRUN true\n`);
      await build(`FROM base:1\nCOPY ${pattern} b /x/\nRUN true\n`);
      await build(
        `FROM base:1\nARG N=${name}\nENV A=\${N#${pattern}} B=\${N%${pattern}} C=\${N//${pattern}/x}\nRUN true\n`,
      );
    },
    180_000,
  );

  test("an ignore file of 50,000 rules", async () => {
    writeFileSync(
      join(context, ".dockerignore"),
      Array.from({ length: 50_000 }, (_, index) => `**/x${index}*y`).join("\n"),
    );
    expect((await build("FROM base:1\nCOPY . /x/\nRUN true\n")).exitCode).toBe(0);
  }, 180_000);
});
