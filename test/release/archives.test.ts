/** The archives of a release, read by common programs. */
import { describe, expect, test } from "bun:test";
import { lstatSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ArchiveEntry } from "../../scripts/packaging/archive-entry.ts";
import { runProgram } from "../../scripts/packaging/run-program.ts";
import { writeTar } from "../../scripts/packaging/tar.ts";
import { writeZip } from "../../scripts/packaging/zip.ts";
import { temporaryDirectory } from "../support/bough.ts";

const date = new Date("2026-03-04T05:06:08Z");
const entries: ArchiveEntry[] = [
  { type: "file", path: "top/read me é.txt", mode: 0o644, content: "text\n" },
  { type: "file", path: "top/program", mode: 0o755, content: new Uint8Array(100_000).fill(7) },
  { type: "file", path: "top/empty", mode: 0o600, content: "" },
];

describe.each([
  ["tar", writeTar, ["tar", "-xf"]],
  ["zip", writeZip, ["busybox", "unzip", "-q"]],
] as const)("%s", (name, write, unpack) => {
  test("files are extracted with their contents, modes and time", () => {
    const directory = temporaryDirectory();
    const archive = join(directory, `archive.${name}`);
    writeFileSync(archive, write(entries, date));
    runProgram([...unpack, archive], { cwd: directory });
    expect(readdirSync(join(directory, "top")).sort()).toEqual(["empty", "program", "read me é.txt"]);
    expect(readFileSync(join(directory, "top/read me é.txt"), "utf8")).toBe("text\n");
    expect(readFileSync(join(directory, "top/program"))).toEqual(Buffer.alloc(100_000, 7));
    expect(statSync(join(directory, "top/program")).mode & 0o777).toBe(0o755);
    expect(statSync(join(directory, "top/empty")).mode & 0o777).toBe(0o600);
    if (name === "tar") expect(statSync(join(directory, "top/program")).mtime).toEqual(date);
  });

  test("the order of the entries makes no difference", () => {
    expect(write(entries.toReversed(), date)).toEqual(write(entries, date));
  });
});

test("a tar archive has directories, links and owners, too", () => {
  const directory = temporaryDirectory();
  const archive = join(directory, "archive.tar");
  const tree: ArchiveEntry[] = [
    { type: "directory", path: "home", mode: 0o1777, uid: 1000, gid: 50 },
    { type: "symlink", path: "bin", target: "usr/bin" },
  ];
  writeFileSync(archive, writeTar(tree, date));
  expect(runProgram(["tar", "--numeric-owner", "-tvf", archive]).replaceAll(/ +/g, " ")).toContain(
    "drwxrwxrwt 1000/50 0 ",
  );
  runProgram(["tar", "--no-same-owner", "-xf", archive], { cwd: directory });
  expect(readlinkSync(join(directory, "bin"))).toBe("usr/bin");
  expect(lstatSync(join(directory, "home")).isDirectory()).toBe(true);
});

test("a tar archive has names of any length, and extended attributes", () => {
  const archive = join(temporaryDirectory(), "archive.tar");
  const path = "a".repeat(101);
  const attributes = [{ name: "user.kind", value: Buffer.from("long") }];
  writeFileSync(archive, writeTar([{ type: "file", path, mode: 0o644, content: "", attributes }], date));
  const shown = runProgram(["tar", "--xattrs", "--xattrs-include=*", "-tvvf", archive]);
  expect(shown).toContain(path);
  expect(shown).toContain("4 user.kind");
});

test("a zip archive stores times in steps of two seconds, from 1980 on", () => {
  const [file] = entries.slice(0, 1);
  const zip = writeZip(file === undefined ? [] : [file], date);
  const view = new DataView(zip.buffer);
  expect([view.getUint16(10, true), view.getUint16(12, true)]).toEqual([
    (5 << 11) | (6 << 5) | 4,
    ((2026 - 1980) << 9) | (3 << 5) | 4,
  ]);
  expect(() => writeZip(entries, new Date(0))).toThrow("1970");
});
