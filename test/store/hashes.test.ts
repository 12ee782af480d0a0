import { beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import type { Clock } from "../../src/clock.ts";
import { createPace } from "../../src/pace.ts";
import { FileColumns, type FileState } from "../../src/store/file-columns.ts";
import { createFileTable } from "../../src/store/file-table.ts";
import type { ContextHashes } from "../../src/store/hashes.ts";
import { packMerged } from "../../src/store/merge-files.ts";
import { unpackFiles } from "../../src/store/packed-files.ts";
import { PendingFiles } from "../../src/store/pending-files.ts";
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

interface FileRow {
  path: string;
  state: FileState;
  sha256: string;
}

/** What is stored once these rows were set, one after the other. */
function pack(rows: readonly FileRow[], before = new FileColumns()): Uint8Array {
  const pending = new PendingFiles();
  for (const { path, state, sha256 } of rows) pending.add(path, state, sha256);
  const packing = packMerged(before, pending, rows.length);
  for (let step = packing.next(); ; step = packing.next()) if (step.done) return step.value;
}

function pathsIn(columns: FileColumns): string[] {
  return Array.from({ length: columns.length }, (_, row) => columns.paths.at(row));
}

describe("a file's hash is known", () => {
  const table = createFileTable(unpackFiles(pack([{ path: "/c/a", state, sha256: one }])));

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

const number = fc.double({ noNaN: true });
const row: fc.Arbitrary<FileRow> = fc.record({
  path: fc.string({
    unit: fc.constantFrom("a", "/", "日", "\n", " ", "\u{1f600}"),
    minLength: 1,
    maxLength: 4,
  }),
  state: fc.record({ device: number, inode: number, size: number, mtimeMs: number, ctimeMs: number }),
  sha256: fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: 64, maxLength: 64 }),
});

test("a table gives back what was set last, in whatever order it is asked; what has changed keeps its place", () => {
  const rows = fc.array(row, { maxLength: 40 });
  fc.assert(
    fc.property(rows, rows, fc.infiniteStream(fc.nat()), (first, second, order) => {
      const before = unpackFiles(pack(first));
      const columns = unpackFiles(pack(second, before));
      const latest = new Map([...first, ...second].map((each) => [each.path, each]));
      expect(pathsIn(columns).sort()).toEqual([...latest.keys()].sort());
      expect(pathsIn(columns).slice(0, before.length)).toEqual(pathsIn(before));
      const table = createFileTable(columns);
      for (const [turn, at] of [...order.take(60)].entries()) {
        const path = pathsIn(columns)[(turn < 20 ? turn : at) % Math.max(1, columns.length)] ?? "";
        const asked = latest.get(path);
        if (asked !== undefined) expect(table.get(path, asked.state)).toBe(asked.sha256);
      }
    }),
    { numRuns: runs(100) },
  );
});

test("a table has many parts", () => {
  const rows = Array.from({ length: 20_000 }, (_, index) => ({
    path: `/c/${index}`,
    state: { ...state, inode: index },
    sha256: index.toString(16).padStart(64, "0"),
  }));
  const columns = unpackFiles(pack(rows));
  expect(pathsIn(columns)).toEqual(rows.map(({ path }) => path));
  const wrong = rows.filter(
    ({ state, sha256 }, at) => !columns.isInState(at, state) || columns.hashAt(at) !== sha256,
  );
  expect(wrong).toEqual([]);
});

test("what is broken or cut off is an empty table", () => {
  const packed = pack([{ path: "/c/a", state, sha256: one }]);
  for (let length = 0; length < packed.length; length++) {
    expect(unpackFiles(packed.subarray(0, length)).length).toBe(0);
  }
  expect(unpackFiles(new Uint8Array(packed.length).fill(0xff)).length).toBe(0);
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

  describe("while they are saved, a part at a time", () => {
    const many = 10_000;
    /** Saves many, and calls `meanwhile` once the saving gives way. */
    async function saveMany(meanwhile: (hashes: ContextHashes) => void) {
      const hashes = store.hashes.open("/c");
      for (let index = 0; index < many; index++) hashes.set(`/c/${index}`, state, one);
      let pauses = 0;
      const pace = createPace(undefined);
      await hashes.saveIfDue({
        step() {
          if (pauses++ === 0) meanwhile(hashes);
          return pace.step() ?? Promise.resolve();
        },
      });
      expect(pauses).toBeGreaterThan(0);
      return hashes;
    }
    const last = `/c/${many - 1}`;

    test("are known, and those that are set wait for the next time", async () => {
      const hashes = await saveMany((hashes) => {
        expect(hashes.get("/c/0", state)).toBe(one);
        hashes.set("/c/0", state, two);
        hashes.set("/c/new", state, two);
        expect(hashes.get("/c/0", state)).toBe(two);
      });
      expect(known("/c", "/c/0", last, "/c/new")).toEqual([one, one, undefined]);
      expect([hashes.unsaved, hashes.get("/c/0", state)]).toEqual([2, two]);
      hashes.save();
      expect(known("/c", "/c/0", last, "/c/new")).toEqual([two, one, two]);
    });

    test("are not written over what was saved at once meanwhile", async () => {
      await saveMany((hashes) => {
        hashes.set("/c/0", state, two);
        hashes.save();
      });
      expect(known("/c", "/c/0", last)).toEqual([two, one]);
    });

    test("stay where the saving is interrupted", async () => {
      const hashes = store.hashes.open("/c");
      for (let index = 0; index < many; index++) hashes.set(`/c/${index}`, state, one);
      const interrupted = { step: () => Promise.reject(new Error("interrupted")) };
      await expect(hashes.saveIfDue(interrupted)).rejects.toThrow("interrupted");
      expect(known("/c", last)).toEqual([undefined]);
      hashes.save();
      expect(known("/c", last)).toEqual([one]);
    });
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
