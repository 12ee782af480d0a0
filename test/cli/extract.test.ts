/** Files of an untrusted image: nothing is written outside of the destination. */
import { beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { extractArchive } from "../../src/cli/images/extract.ts";
import { readAttributes } from "../../src/engine/system/xattrs.ts";
import { readTar, type TarEntry } from "../../src/image/tar-reader.ts";
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

const extract = (...entries: RawEntry[]) => extractAs("plain", entries);

const extractAs = (
  style: "plain" | "exact",
  entries: readonly RawEntry[],
  attributes: TarEntry["attributes"] = [],
) => extractArchive(withAttributes(readTar(inChunks(tarOf(entries))), attributes), root, optionsOf(style));

const optionsOf = (style: "plain" | "exact") => ({
  style,
  signal: new AbortController().signal,
  platform: "linux" as const,
  warn: (message: string) => void warnings.push(message),
});

async function* withAttributes(entries: AsyncIterable<TarEntry>, attributes: TarEntry["attributes"]) {
  for await (const entry of entries) yield { ...entry, attributes };
}

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
  const escapes: [string, RawEntry[]][] = [
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
  ];

  test.each(escapes)("%s", async (_, entries) => {
    writeFileSync(join(outside, "secret"), "secret");
    await expect(extract(...entries)).rejects.toThrow();
    expect(readdirSync(outside).sort()).toEqual(["root", "secret"]);
    expect(existsSync("/owned")).toBe(false);
  });

  test.each(escapes)("%s, or replaces what is in the way, as docker does", async (_, entries) => {
    writeFileSync(join(outside, "secret"), "secret");
    await extractAs("exact", entries).catch(() => undefined);
    expect(readdirSync(outside).sort()).toEqual(["root", "secret"]);
    expect(lstatSync(join(outside, "secret")).nlink).toBe(1);
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

test("a large file of this machine never has bits of its mode that it must not keep, not even while it is written", async () => {
  const hostPath = join(outside, "original");
  const content = "x".repeat(300_000);
  writeFileSync(hostPath, content);
  chmodSync(hostPath, 0o6777);
  const modes: string[] = [];
  const [entry] = await Array.fromAsync(readTar(inChunks(tarOf([{ name: "./a", content, mode: 0o6777 }]))));
  if (entry === undefined) throw new Error("no entry");
  const pieces = async function* () {
    modes.push((lstatSync(join(root, "a")).mode & 0o7777).toString(8));
    yield { offset: 0, bytes: Buffer.from(content) };
  };
  const entries = async function* () {
    yield { ...entry, hostPath, pieces };
  };
  await extractArchive(entries(), root, optionsOf("plain"));
  modes.push((lstatSync(join(root, "a")).mode & 0o7777).toString(8));
  // A file system that shares blocks needs no pieces.
  expect([...new Set(modes)]).toEqual([(0o777 & ~process.umask()).toString(8)]);
  expect(readFileSync(join(root, "a"), "utf8")).toBe(content);
});

test("writes all that docker's files have: setuid bits, pipes, links to links, and attributes except capabilities", async () => {
  const attributes = ["user.note", "security.capability"].map((name) => ({ name, value: Buffer.from("hi") }));
  await extractAs(
    "exact",
    [
      { name: "d/", flag: "5", mode: 0o1777 },
      { name: "d/a", content: "hello", mode: 0o4755 },
      { name: "link", flag: "2", target: "nowhere" },
      { name: "hard", flag: "1", target: "link" },
      { name: "pipe", flag: "6", mode: 0o620 },
    ],
    attributes,
  );
  const modeOf = (name: string) => (lstatSync(join(root, name)).mode & 0o7777).toString(8);
  expect(["d", "d/a", "pipe"].map(modeOf)).toEqual(["1777", "4755", "620"]);
  expect(lstatSync(join(root, "pipe")).isFIFO()).toBe(true);
  expect(readlinkSync(join(root, "hard"))).toBe("nowhere");
  for (const name of ["d", "d/a"])
    expect(readAttributes(join(root, name))).toEqual([{ name: "user.note", value: Buffer.from("hi") }]);
  expect(warnings).toEqual([]);
});

test("control characters in a name are escaped in warnings", async () => {
  await extract({ name: "\u001b[2Jpipe", flag: "6" });
  expect(warnings).toEqual(['"\\u{1b}[2Jpipe" is a device or a pipe, which is left out']);
});
