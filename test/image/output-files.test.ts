import { expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { writeToDirectory } from "../../src/image/output-files.ts";
import { temporaryDirectory } from "../support/bough.ts";

test("a file that can't get its name is closed once, and removed", () => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, "blobs"), "");
  const files = writeToDirectory(directory);
  const file = files.create();
  expect(() => file.keep("blobs/sha256/x", 0)).toThrow();
  expect(() => files[Symbol.dispose]()).not.toThrow();
  expect(readdirSync(directory)).toEqual(["blobs"]);
});
