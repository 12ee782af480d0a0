import { expect, test } from "bun:test";
import { lstatSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSmallContents } from "../../src/builder/staging/small-contents.ts";
import { fileStatOf } from "../../src/context/sources/entry-of.ts";
import { temporaryDirectory } from "../support/bough.ts";

function write(text = "") {
  const absolutePath = join(temporaryDirectory(), "file");
  writeFileSync(absolutePath, text);
  return { absolutePath, contextPath: "file", size: text.length, stat: fileStatOf(lstatSync(absolutePath)) };
}

const bytes = (size: number) => new Uint8Array(size).fill(7);

test("a kept content is a copy, and can be taken once", () => {
  const contents = createSmallContents();
  const buffer = new Uint8Array([1, 2, 3]);
  contents.keep("a", buffer, write());
  buffer.fill(0);
  expect(contents.take("a")).toEqual(new Uint8Array([1, 2, 3]));
  expect(contents.take("a")).toBeUndefined();
});

test.each<[string, (path: string) => void]>([
  ["was written to", (path) => writeFileSync(path, "longer")],
  ["was removed", (path) => rmSync(path)],
  [
    "was replaced by an equal file",
    (path) => {
      writeFileSync(`${path}2`, "abc");
      renameSync(`${path}2`, path);
    },
  ],
])("the content of a file that %s cannot be taken", (_, change) => {
  const contents = createSmallContents();
  const file = write("abc");
  contents.keep("a", bytes(3), file);
  change(file.absolutePath);
  expect(contents.take("a")).toBeUndefined();
});

test("a file over 64 KiB is not kept", () => {
  const contents = createSmallContents();
  const file = write();
  contents.keep("fits", bytes(64 * 1024), file);
  contents.keep("is larger", bytes(64 * 1024 + 1), file);
  expect(contents.take("fits")?.length).toBe(64 * 1024);
  expect(contents.take("is larger")).toBeUndefined();
});

test.each([
  ["32 MiB", 64 * 1024, 512],
  ["10,000 files", 1, 10_000],
])("only the latest %s are kept", (_, size, most) => {
  const contents = createSmallContents();
  const file = write();
  for (let number = 0; number < most + 10; number++) contents.keep(String(number), bytes(size), file);
  // Keeping a content again takes no more room.
  contents.keep(String(most), bytes(size), file);
  const kept = Array.from({ length: most + 10 }, (_, number) => contents.take(String(number)) !== undefined);
  expect(kept.indexOf(true)).toBe(10);
  expect(kept.slice(10)).not.toContain(false);
});

test("taking a content makes room for another", () => {
  const contents = createSmallContents();
  const file = write();
  for (let number = 0; number < 512; number++) contents.keep(String(number), bytes(64 * 1024), file);
  contents.take("100");
  contents.keep("new", bytes(64 * 1024), file);
  expect(contents.take("0")).toBeDefined();
});
