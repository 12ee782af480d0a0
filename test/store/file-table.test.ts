import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createFileTable, FileColumns, type FileState, PendingFiles } from "../../src/store/file-table.ts";
import { packMerged, unpackFiles } from "../../src/store/hashes.ts";
import { state } from "../support/file-state.ts";
import { runs } from "../support/random.ts";

const one = "1".repeat(64);

interface FileRow {
  path: string;
  state: FileState;
  sha256: string;
}

/** Returns what is stored after these rows were set in order. */
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

  test("if the file's state is the same", () => {
    expect(table.get("/c/a", { ...state })).toBe(one);
  });

  test.each(Object.keys(state) as (keyof FileState)[])("not if its %s differs", (field) => {
    expect(table.get("/c/a", { ...state, [field]: state[field] + 1 })).toBeUndefined();
  });

  test("not for another path", () => {
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

test("a table returns what was set last for each path in any order; changed rows keep their place", () => {
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

test("a table of 20,000 rows, which is stored in parts, returns all of them", () => {
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

test("a part is read at an odd memory address", () => {
  const columns = new FileColumns();
  columns.add("/c/a", state, one);
  const part = columns.toBytes();
  const shifted = new Uint8Array(part.length + 1);
  shifted.set(part, 1);
  const read = FileColumns.from([shifted.subarray(1)]);
  expect([pathsIn(read), read.hashAt(0), read.isInState(0, state)]).toEqual([["/c/a"], one, true]);
});

test("bytes that are damaged or cut off give an empty table", () => {
  const packed = pack([{ path: "/c/a", state, sha256: one }]);
  for (let length = 0; length < packed.length; length++) {
    expect(unpackFiles(packed.subarray(0, length)).length).toBe(0);
  }
  expect(unpackFiles(new Uint8Array(packed.length).fill(0xff)).length).toBe(0);
});
