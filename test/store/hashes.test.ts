import { beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import type { Clock } from "../../src/clock.ts";
import { type FileRow, type FileState, openFileTable, packFiles } from "../../src/store/file-table.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { runs } from "../support/random.ts";

const state: FileState = {
  device: 64_769,
  inode: 2 ** 52 + 5,
  size: 4096,
  mtimeMs: 1_763_683_200_123.25,
  ctimeMs: 1_763_683_200_123.5,
};
const one = "1".repeat(64);
const two = "2".repeat(64);

describe("a file's hash is known", () => {
  const table = openFileTable(packFiles([{ path: "/c/a", state, sha256: one }]));

  test("in exactly the state in which it was taken", () => {
    expect(table.get("/c/a", { ...state })).toBe(one);
  });

  test.each(Object.keys(state) as (keyof FileState)[])("not with another %s", (field) => {
    expect(table.get("/c/a", { ...state, [field]: state[field] + 1 })).toBeUndefined();
  });

  test("not under another path", () => {
    expect(table.get("/c/b", state)).toBeUndefined();
  });
});

test("a table gives back what was packed, in whatever order it is asked", () => {
  const number = fc.double({ noNaN: true });
  const row: fc.Arbitrary<FileRow> = fc.record({
    path: fc.string({ unit: fc.constantFrom("a", "/", "日", "\n", " ", "\u{1f600}"), minLength: 1 }),
    state: fc.record({
      device: number,
      inode: number,
      size: number,
      mtimeMs: number,
      ctimeMs: number,
    }),
    sha256: fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: 64, maxLength: 64 }),
  });
  const rows = fc.uniqueArray(row, { selector: ({ path }) => path, maxLength: 20 });
  fc.assert(
    fc.property(rows, fc.infiniteStream(fc.nat()), (packed, order) => {
      const table = openFileTable(packFiles(packed));
      expect(table.rows()).toEqual(packed);
      for (const [turn, at] of [...order.take(30)].entries()) {
        const asked = packed[(turn < 10 ? turn : at) % Math.max(1, packed.length)];
        if (asked !== undefined) expect(table.get(asked.path, asked.state)).toBe(asked.sha256);
      }
    }),
    { numRuns: runs(100) },
  );
});

test("what is broken or cut off is an empty table", () => {
  const packed = packFiles([{ path: "/c/a", state, sha256: one }]);
  for (let length = 0; length < packed.length; length++) {
    expect(openFileTable(packed.subarray(0, length)).length).toBe(0);
  }
  expect(openFileTable(new Uint8Array(packed.length).fill(0xff)).length).toBe(0);
});

describe("a context's hashes", () => {
  let store: Store;
  let clock: Clock & { advance(milliseconds: number): Promise<void> };
  beforeEach(() => {
    clock = createManualClock();
    store = openStore(join(temporaryDirectory(), "state.db"), clock);
  });
  const known = (context: string, ...paths: string[]) => {
    const hashes = store.hashes.open(context);
    return paths.map((path) => hashes.get(path, state));
  };

  test("are there in the next build, once they were saved", () => {
    const hashes = store.hashes.open("/c");
    hashes.set("/c/a", state, one);
    expect(known("/c", "/c/a")).toEqual([undefined]);
    hashes.save();
    expect(known("/c", "/c/a")).toEqual([one]);
    expect(known("/other", "/c/a")).toEqual([undefined]);
  });

  test("stay where an instruction asks for some of them only, and change one by one", () => {
    const first = store.hashes.open("/c");
    for (const name of ["a", "b", "c", "d"]) first.set(`/c/${name}`, state, one);
    first.save();
    const second = store.hashes.open("/c");
    second.set("/c/b", state, two);
    second.set("/c/e", state, two);
    second.save();
    expect(second.get("/c/b", state)).toBe(two);
    expect(known("/c", "/c/a", "/c/b", "/c/e")).toEqual([one, two, two]);
  });

  test("of files that builds no longer ask for go once they are most of it", () => {
    const first = store.hashes.open("/c");
    for (const name of ["a", "b", "c", "d", "e"]) first.set(`/c/${name}`, state, one);
    first.save();
    const build = (...names: string[]) => {
      const hashes = store.hashes.open("/c");
      for (const name of names) hashes.get(`/c/${name}`, state);
      hashes.tidy();
    };
    build("a", "b", "c");
    expect(known("/c", "/c/a", "/c/e")).toEqual([one, one]);
    build("a", "b");
    expect(known("/c", "/c/a", "/c/e")).toEqual([one, undefined]);
  });

  test("go with the context that nobody has built for three months", async () => {
    const write = (context: string) => {
      const hashes = store.hashes.open(context);
      hashes.set("a", state, one);
      hashes.save();
    };
    write("/old");
    await clock.advance(91 * 24 * 60 * 60 * 1000);
    write("/new");
    expect([known("/old", "a"), known("/new", "a")]).toEqual([[undefined], [one]]);
  });
});
