import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { measureUsage, planPrune, prune } from "../../src/engine/prune.ts";
import type { ImageRecord } from "../../src/service/types.ts";
import { openInput, TestEngine } from "../support/engine.ts";

let engine: TestEngine;
let base: string;
/** base <- middle <- top, and base <- side; only base and side have a tag. */
let middle: string;
let top: string;
let side: string;

beforeEach(async () => {
  engine = await TestEngine.open();
  base = await engine.importBase();
  middle = (await engine.run(base, "head -c 3000000 /dev/zero > /middle")).image ?? "";
  top = (await engine.run(middle, "head -c 5000000 /dev/zero > /top; ln /top /same")).image ?? "";
  side = (await engine.run(base, "touch /side")).image ?? "";
  await engine.json("PATCH", `/v1/images/${side}/tag`, { tag: "side:1" });
  await engine.upload("x".repeat(10_000));
});

afterEach(() => engine.close());

/** As if the process that ran all operations so far had ended. */
function forgetOwners(): void {
  const database = new Database(join(engine.directory, "engine.db"));
  database.run("UPDATE operations SET owner = 'boot.1.1'");
  database.close();
}

const selection = (...keep: string[]) => ({ keep: new Set(keep), all: false });
const uuids = async () =>
  (await engine.json<{ images: ImageRecord[] }>("GET", "/v1/images")).images.map(({ uuid }) => uuid);
const layers = () => readdirSync(join(engine.directory, "layers")).length;

test("usage counts images, layers, files and finished operations, and what they take on disk", async () => {
  const usage = await measureUsage(engine.directory);
  expect(usage.images).toEqual({ count: 4, tagged: 2 });
  expect(usage.layers.count).toBe(4);
  // The hard link counts once.
  expect(usage.layers.bytes).toBeGreaterThan(8_000_000);
  expect(usage.layers.bytes).toBeLessThan(8_000_000 + 4_000_000);
  expect(usage.files).toMatchObject({ count: 1, bytes: 12_288 });
  expect(usage.operations.count).toBe(4);
});

describe("prune", () => {
  test("says what it will free, and frees it: untagged images, their layers, files, records of operations", async () => {
    forgetOwners();
    const plan = await planPrune(engine.directory, selection());
    expect(plan.images).toEqual(
      expect.arrayContaining([
        { uuid: middle, tags: [] },
        { uuid: top, tags: [] },
      ]),
    );
    expect(plan.images).toHaveLength(2);
    expect(plan.layers.count).toBe(2);
    expect(plan.layers.bytes).toBeGreaterThan(8_000_000);
    expect([plan.files.count, plan.operations.count]).toEqual([1, 4]);
    expect((await uuids()).length).toBe(4);

    expect(await prune(engine.directory, selection())).toEqual(plan);
    expect(await uuids()).toEqual([side, base]);
    expect(layers()).toBe(2);
    expect((await engine.run(side, "ls /side")).stdout).toBe("/side\n");
    expect((await planPrune(engine.directory, selection())).images).toEqual([]);
  });

  test("keeps what a session's branch names, with the layers below it", async () => {
    await prune(engine.directory, selection(top));
    expect(new Set(await uuids())).toEqual(new Set([top, side, base]));
    expect((await engine.run(top, "ls /middle /top")).stdout).toBe("/middle\n/top\n");
  });

  test("with all, tagged images go too, but not what is kept", async () => {
    const plan = await prune(engine.directory, { keep: new Set([middle]), all: true });
    expect(plan.images).toEqual(
      expect.arrayContaining([
        { uuid: base, tags: ["busybox:latest"] },
        { uuid: side, tags: ["side:1"] },
        { uuid: top, tags: [] },
      ]),
    );
    expect(await uuids()).toEqual([middle]);
    expect((await engine.run(middle, "ls /middle")).stdout).toBe("/middle\n");
  });

  test("leaves alone what a running operation stands on", async () => {
    const { uuid } = await engine.start({ image: top, command: "cat; ls /middle /top", stdin: openInput });
    const plan = await prune(engine.directory, { keep: new Set(), all: true });
    expect(plan.images.map((image) => image.uuid)).not.toContain(top);
    expect(plan.files.count).toBe(0);
    await engine.closeInput({ uuid });
    const finished = await engine.finish({ uuid });
    expect(finished.metadata?.result?.stdout?.value).toBe("/middle\n/top\n");
  });

  test("leaves the records of operations that a client may still ask about", async () => {
    const { uuid } = await engine.start({ image: base, command: "true" });
    await engine.finish({ uuid });
    expect((await prune(engine.directory, selection())).operations.count).toBe(0);
    expect((await engine.fetch("GET", `/v1/operations/${uuid}`)).status).toBe(200);
    forgetOwners();
    expect((await prune(engine.directory, selection())).operations.count).toBe(5);
    expect((await engine.fetch("GET", `/v1/operations/${uuid}`)).status).toBe(404);
  });
});

test("an empty directory takes nothing", async () => {
  const directory = join(engine.directory, "fresh");
  expect(await measureUsage(directory)).toMatchObject({
    images: { count: 0 },
    layers: { count: 0, bytes: 0 },
  });
  expect(await prune(directory, selection())).toMatchObject({ images: [], files: { count: 0 } });
});
