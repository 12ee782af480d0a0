import { expect, test } from "bun:test";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheFileSystem, localFileSystem } from "../../src/context/file-system/file-system.ts";
import { temporaryDirectory } from "../support/bough.ts";

test("results are remembered, but a missing file is looked up again", () => {
  const directory = temporaryDirectory();
  const path = (name: string) => join(directory, name);
  writeFileSync(path("file"), "old");
  symlinkSync("file", path("link"));
  const files = cacheFileSystem(localFileSystem);
  const look = () => ({
    names: files.readDirectory(directory).toSorted(),
    size: files.stat(path("file")).size,
    target: files.readLink(path("link")),
  });
  const before = { names: ["file", "link"], size: 3, target: "file" };
  expect(look()).toEqual(before);
  expect(() => files.stat(path("late"))).toThrow("ENOENT");

  rmSync(path("link"));
  symlinkSync("late", path("link"));
  writeFileSync(path("file"), "longer");
  mkdirSync(path("late"));
  expect(look()).toEqual(before);
  expect(files.stat(path("late")).isDirectory()).toBe(true);
});
