import { expect, test } from "bun:test";
import { createSmallContents } from "../../src/builder/staging/small-contents.ts";

const bytes = (size: number) => new Uint8Array(size).fill(7);

test("what was kept is taken once, as it was then", () => {
  const contents = createSmallContents();
  const buffer = new Uint8Array([1, 2, 3]);
  contents.keep("a", buffer);
  buffer.fill(0);
  expect(contents.take("a")).toEqual(new Uint8Array([1, 2, 3]));
  expect(contents.take("a")).toBeUndefined();
});

test("a file over 64 KiB is not kept", () => {
  const contents = createSmallContents();
  contents.keep("fits", bytes(64 * 1024));
  contents.keep("is larger", bytes(64 * 1024 + 1));
  expect(contents.take("fits")?.length).toBe(64 * 1024);
  expect(contents.take("is larger")).toBeUndefined();
});

test.each([
  ["32 MiB", 64 * 1024, 512],
  ["10,000 files", 1, 10_000],
])("no more than %s are kept, the latest", (_, size, most) => {
  const contents = createSmallContents();
  for (let number = 0; number < most + 10; number++) contents.keep(String(number), bytes(size));
  // Again, which takes no room.
  contents.keep(String(most), bytes(size));
  const kept = Array.from({ length: most + 10 }, (_, number) => contents.take(String(number)) !== undefined);
  expect(kept.indexOf(true)).toBe(10);
  expect(kept.slice(10)).not.toContain(false);
});

test("what was taken makes room", () => {
  const contents = createSmallContents();
  for (let number = 0; number < 512; number++) contents.keep(String(number), bytes(64 * 1024));
  contents.take("100");
  contents.keep("new", bytes(64 * 1024));
  expect(contents.take("0")).toBeDefined();
});
