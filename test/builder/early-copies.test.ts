/** A large file that an engine in this process copies while it is hashed. */
import { expect, test } from "bun:test";
import { createEarlyCopies } from "../../src/builder/staging/early-copies.ts";
import type { FileToHash } from "../../src/context/hashing/hash-file.ts";
import type { AheadCopy } from "../../src/service/wire/file.ts";

const file = { absolutePath: "/large", contextPath: "large", size: 1 } as FileToHash;
const never = new Promise<never>(() => {});

/** Copies that end when the test says so. */
function setUp(signal = new AbortController().signal) {
  const dropped: string[] = [];
  const copies: PromiseWithResolvers<AheadCopy>[] = [];
  const early = createEarlyCopies((_, options) => {
    const copy = Promise.withResolvers<AheadCopy>();
    options.signal.addEventListener("abort", () => copy.reject(options.signal.reason));
    copies.push(copy);
    return copy.promise;
  }, signal);
  const end = (index: number, sha256: string) =>
    copies[index]?.resolve({ sha256, drop: () => void dropped.push(sha256) });
  const hash = (decided: Promise<unknown> = never) => early.hashOnTheWay(file, () => {}, decided);
  return { early, copies, dropped, end, hash };
}

test("a file is copied as soon as it is certainly needed, and dropped at the end", async () => {
  const { early, copies, dropped, end, hash } = setUp();
  const hashing = hash();
  await Bun.sleep(0);
  expect(copies).toHaveLength(0);
  early.markNeeded();
  await Bun.sleep(0);
  end(0, "one");
  expect(await hashing).toBe("one");
  const second = hash();
  await Bun.sleep(0);
  end(1, "two");
  expect(await second).toBe("two");
  expect(dropped).toEqual([]);
  await early.stop();
  expect(dropped).toEqual(["one", "two"]);
});

test.each([
  ["it turns out that the file may be in the cache", () => {}],
  [
    "it was needed only before a step in the cache",
    ({ early }: ReturnType<typeof setUp>) => {
      early.markNeeded();
      early.markUncertain();
    },
  ],
])("a file is not copied if %s", async (_, prepare) => {
  const feed = setUp();
  prepare(feed);
  expect(await feed.hash(Promise.resolve())).toBeUndefined();
  expect(feed.copies).toHaveLength(0);
});

test("one file is copied at a time", async () => {
  const { early, copies, end, hash } = setUp();
  early.markNeeded();
  const first = hash();
  await Bun.sleep(0);
  expect(await hash()).toBeUndefined();
  expect(copies).toHaveLength(1);
  end(0, "one");
  expect(await first).toBe("one");
});

test("the end of the build ends a copy, and nothing is copied after it", async () => {
  const { early, copies, hash } = setUp();
  early.markNeeded();
  const first = hash();
  await Bun.sleep(0);
  const stopped = early.stop();
  await expect(first).rejects.toThrow();
  await stopped;
  expect(await hash()).toBeUndefined();
  expect(copies).toHaveLength(1);
});
