/** How much of the disk layers take that share files with their versions before, and how much their removal frees. */
import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../../src/database.ts";
import { migrations } from "../../src/engine/engine-directory.ts";
import { makeLayout } from "../../src/engine/layout.ts";
import { prune } from "../../src/engine/prune/prune.ts";
import { measureUsage } from "../../src/engine/prune/usage.ts";
import { createFreedSizes } from "../../src/engine/records/layer-sizes.ts";
import { layerDirectory } from "../../src/engine/records/layers.ts";
import { diskUsage } from "../../src/engine/system/disk.ts";
import { TestEngine } from "../support/engine.ts";
import { keeping } from "../support/prune-selection.ts";

const fileBytes = 2_000;

let engine: TestEngine;
let base: string;
let database: Database;
let directory: string;
beforeEach(async () => {
  engine = await TestEngine.open();
  base = await engine.importBase();
  database = openDatabase(`${engine.directory}/engine.db`, migrations);
  directory = mkdtempSync(join(tmpdir(), "bough-versions-"));
});
afterEach(async () => {
  database.close();
  rmSync(directory, { recursive: true, force: true });
  await engine.close();
});

/** Makes a layer of 1200 files. `times`: the number of files with the time 2, which the others have not. */
async function make(times: number, earlier?: string): Promise<{ image: string; id: number }> {
  const content = "x".repeat(fileBytes);
  const path = join(directory, "file");
  writeFileSync(path, content);
  const file = {
    ...{ path, sha256: new Bun.CryptoHasher("sha256").update(content).digest("hex"), size: fileBytes },
    ...{ uid: 0, gid: 0, mode: 0o644 },
  };
  const files = Array.from({ length: 1_200 }, (_, index) => ({
    ...{ ...file, destination: `/many/${index}`, mtime: index < times ? times : 1 },
  }));
  const before = earlier === undefined ? {} : { earlier_image: earlier };
  const { image = "" } = await engine.runWith(base, files, "", { entries: {}, ...before });
  await engine.engine.settle?.(image);
  const row = database
    .query<{ layer: number }, [string]>("SELECT layer FROM images WHERE uuid = ?")
    .get(image);
  return { image, id: row?.layer ?? 0 };
}

const records = () => ({ database, layout: makeLayout(engine.directory) });
const bytesOf = (ids: readonly number[]) =>
  diskUsage(ids.map((id) => layerDirectory(makeLayout(engine.directory), id)));
const layerBytes = async () => (await measureUsage(engine.directory, keeping())).layers.bytes;
const layerIds = () =>
  database
    .query<{ id: number }, []>("SELECT id FROM layers")
    .all()
    .map(({ id }) => id);

test("of three versions, the removal of each frees what no other has, in any order", async () => {
  const first = await make(0);
  const second = await make(200, first.image);
  const third = await make(700, second.image);
  expect(await layerBytes()).toBe(bytesOf(layerIds()));
  for (const order of [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ]) {
    const ids = order.map((index) => [first, second, third][index]?.id ?? 0);
    const freed = createFreedSizes(records());
    const real = [0, 1, 2].map((gone) => bytesOf(ids.slice(gone)) - bytesOf(ids.slice(gone + 1)));
    expect(ids.map((id) => freed(id))).toEqual(real);
  }
});

test("a prune down to a size goes on if the later version of a layer frees little", async () => {
  const first = await make(0);
  const second = await make(100, first.image);
  const other = await make(1_200);
  const used = (usedAt: number) => ({ session: "k", usedAt, isCurrent: true });
  const uses = new Map([
    [first.image, used(Date.now() + 3_000_000)],
    [second.image, used(Date.now() + 1_000_000)],
    [other.image, used(Date.now() + 2_000_000)],
  ]);
  // The second version has 200 KB of its own.
  const keepBytes = (await layerBytes()) - 1_000_000;
  await prune(engine.directory, { ...keeping(), uses, keepBytes, logsBefore: 0 });
  expect(layerIds()).toContain(first.id);
  expect(layerIds()).not.toContain(second.id);
  expect(layerIds()).not.toContain(other.id);
  expect(await layerBytes()).toBeLessThanOrEqual(keepBytes);
});

test("what layers share is on the disk once, also if one of them is copied from", async () => {
  const first = await make(0);
  const copies = [{ image: first.image, sources: ["/many"], destination: "/copy" }];
  await engine.run(base, "", { copies });
  await make(100, first.image);
  expect(await layerBytes()).toBe(bytesOf(layerIds()));
});

test("what layers share is on the disk once, also if two are later versions of one", async () => {
  const first = await make(0);
  await make(100, first.image);
  await make(300, first.image);
  expect(await layerBytes()).toBe(bytesOf(layerIds()));
});
