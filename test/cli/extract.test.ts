/** Files of an untrusted image: nothing is written outside of the destination. */
import { beforeEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { extractArchive } from "../../src/cli/images/extract.ts";
import { readTar } from "../../src/image/tar-reader.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { inChunks, type RawEntry, tarOf } from "../support/tar-bytes.ts";

let outside: string;
let root: string;
let warnings: string[];
beforeEach(() => {
  outside = temporaryDirectory();
  root = join(outside, "root");
  mkdirSync(root);
  warnings = [];
});

const extract = (...entries: RawEntry[]) =>
  extractArchive(readTar(inChunks(tarOf(entries))), root, {
    signal: new AbortController().signal,
    platform: "linux",
    warn: (message) => warnings.push(message),
  });

test("writes files, directories and links with modes and times, but without setuid bits", async () => {
  const done = await extract(
    { name: "./", flag: "5" },
    { name: "./d/", flag: "5", mode: 0o555 },
    { name: "./d/a", content: "hello", mode: 0o4755 },
    { name: "./d/deep/er/b", content: "b" },
    { name: "./link", flag: "2", target: "/etc/passwd" },
    { name: "./hard", flag: "1", target: "./d/a" },
    { name: "./null", flag: "3" },
  );
  expect(done).toEqual({ files: 4, bytes: 6 });
  expect(readFileSync(join(root, "hard"), "utf8")).toBe("hello");
  expect((lstatSync(join(root, "d/a")).mode & 0o7777).toString(8)).toBe("755");
  expect((lstatSync(join(root, "d")).mode & 0o777).toString(8)).toBe("555");
  expect(lstatSync(join(root, "d/a")).mtimeMs).toBe(1_700_000_000_000);
  expect(lstatSync(join(root, "link")).isSymbolicLink()).toBe(true);
  expect(warnings).toEqual(["./null is a device or a pipe, which is left out"]);
});

describe("refuses an entry that could lead outside:", () => {
  test.each<[string, RawEntry[]]>([
    ["a name with ..", [{ name: "../owned", content: "x" }]],
    ["a name with .. in the middle", [{ name: "a/../../owned", content: "x" }]],
    ["an absolute name", [{ name: "/owned", content: "x" }]],
    [
      "a file below a link of the archive",
      [
        { name: "l", flag: "2", target: ".." },
        { name: "l/owned", content: "x" },
      ],
    ],
    [
      "a directory that is already a link",
      [
        { name: "l", flag: "2", target: ".." },
        { name: "l/", flag: "5" },
      ],
    ],
    ["a hard link to a file outside", [{ name: "owned", flag: "1", target: "../secret" }]],
    [
      "a hard link through a link",
      [
        { name: "l", flag: "2", target: ".." },
        { name: "owned", flag: "1", target: "l/secret" },
      ],
    ],
    [
      "a hard link to a link",
      [
        { name: "l", flag: "2", target: "../secret" },
        { name: "h", flag: "1", target: "l" },
      ],
    ],
    [
      "a file in the place of a directory",
      [
        { name: "d/", flag: "5" },
        { name: "d", content: "x" },
      ],
    ],
  ])("%s", async (_, entries) => {
    writeFileSync(join(outside, "secret"), "secret");
    await expect(extract(...entries)).rejects.toThrow();
    expect(readdirSync(outside).sort()).toEqual(["root", "secret"]);
    expect(existsSync("/owned")).toBe(false);
  });
});

test("a file replaces an existing link instead of being written through it", async () => {
  writeFileSync(join(outside, "secret"), "secret");
  symlinkSync("../secret", join(root, "a"));
  await extract({ name: "a", content: "new" });
  expect(readFileSync(join(outside, "secret"), "utf8")).toBe("secret");
  expect(lstatSync(join(root, "a")).isFile()).toBe(true);
});

test("control characters in a name are escaped in warnings", async () => {
  await extract({ name: "\u001b[2Jpipe", flag: "6" });
  expect(warnings).toEqual(['"\\u{1b}[2Jpipe" is a device or a pipe, which is left out']);
});
