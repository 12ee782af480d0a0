import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeLayout } from "../../src/engine/layout.ts";
import { planPrune, prune } from "../../src/engine/prune/prune.ts";
import { measureUsage } from "../../src/engine/prune/usage.ts";
import type { ImageRecord } from "../../src/service/wire/image.ts";
import { openInput, TestEngine } from "../support/engine.ts";
import { keeping } from "../support/prune-selection.ts";

let engine: TestEngine;
let base: string;
/** The images are base <- middle <- top and base <- side; only base and side have a tag. */
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

/** Changes the records as if the process of all operations so far had ended. */
function forgetOwners(): void {
  const database = new Database(join(engine.directory, "engine.db"));
  database.run("UPDATE operations SET owner = 'boot.1.1'");
  database.close();
}

const uuids = async () =>
  (await engine.json<{ images: ImageRecord[] }>("GET", "/v1/images")).images.map(({ uuid }) => uuid);
const layers = () => readdirSync(join(engine.directory, "layers")).length;

test("usage has the counts and disk usage of images, layers, files and finished operations", async () => {
  const usage = await measureUsage(engine.directory, keeping(top));
  expect(usage.images).toEqual({ count: 4, tagged: 2 });
  expect(usage.layers.count).toBe(4);
  // The hard link counts once.
  expect(usage.layers.bytes).toBeGreaterThan(8_000_000);
  expect(usage.layers.bytes).toBeLessThan(8_000_000 + 4_000_000);
  expect(usage.files).toEqual({ count: 1, bytes: 10_000, reclaimableBytes: 10_000 });
  expect(usage.operations.count).toBe(4);
  expect(usage.owners.map(({ kind, name, count }) => [kind, name, count])).toEqual([
    ["imported", "", 1],
    ["tagged", "", 1],
    ["session", "k", 2],
  ]);
  expect((await measureUsage(engine.directory, keeping(middle))).owners).toContainEqual(
    expect.objectContaining({ kind: "unused", count: 1, reclaimableBytes: expect.any(Number) }),
  );
});

describe("prune", () => {
  test("plans and removes untagged images, their layers, files and records of operations", async () => {
    forgetOwners();
    const plan = await planPrune(engine.directory, keeping());
    expect(plan.images).toEqual(
      expect.arrayContaining([
        { uuid: middle, tags: [] },
        { uuid: top, tags: [] },
      ]),
    );
    expect(plan.images).toHaveLength(2);
    expect(plan.layers.count).toBe(2);
    expect(plan.layers.bytes).toBe(8_000_000);
    expect([plan.files.count, plan.operations.count]).toEqual([1, 4]);
    expect((await uuids()).length).toBe(4);

    expect(await prune(engine.directory, keeping())).toMatchObject(plan);
    expect(await uuids()).toEqual([side, base]);
    expect(layers()).toBe(2);
    expect((await engine.run(side, "ls /side")).stdout).toBe("/side\n");
    expect((await planPrune(engine.directory, keeping())).images).toEqual([]);
  });

  test("keeps the image of a session's branch, with its layers", async () => {
    await prune(engine.directory, keeping(top));
    expect(new Set(await uuids())).toEqual(new Set([top, side, base]));
    expect((await engine.run(top, "ls /middle /top")).stdout).toBe("/middle\n/top\n");
  });

  test("removes tagged images and those of sessions too with all", async () => {
    const plan = await prune(engine.directory, { ...keeping(middle), all: true });
    expect(plan.images).toEqual(
      expect.arrayContaining([
        { uuid: base, tags: ["busybox:latest"] },
        { uuid: side, tags: ["side:1"] },
        { uuid: top, tags: [] },
      ]),
    );
    expect(await uuids()).toEqual([]);
    expect(layers()).toBe(0);
  });

  test("with all replaces a damaged database, unless another engine is using it", async () => {
    await engine.engine.close();
    const all = () => prune(engine.directory, { ...keeping(), all: true });
    const database = join(engine.directory, "engine.db");
    writeFileSync(database, "garbage".repeat(1000));
    {
      using _other = makeLayout(engine.directory).lock;
      await expect(all()).rejects.toThrow("damaged, and another bough process is using it");
      expect(readFileSync(database, "utf8")).toStartWith("garbage");
    }
    await all();
    engine = await TestEngine.open({ directory: engine.directory });
    expect(await uuids()).toEqual([]);
    expect(layers()).toBe(0);
  });

  test("removes partial layers of killed processes", async () => {
    mkdirSync(join(engine.directory, "layers", "zz"));
    await prune(engine.directory, keeping(top));
    expect(layers()).toBe(4);
  });

  test("keeps the image of a running operation", async () => {
    const { uuid } = await engine.start({ image: top, command: "cat; ls /middle /top", stdin: openInput });
    const plan = await prune(engine.directory, { ...keeping(), all: true });
    expect(plan.images.map((image) => image.uuid)).not.toContain(top);
    expect(plan.files.count).toBe(0);
    await engine.closeInput({ uuid });
    const finished = await engine.finish({ uuid });
    expect(finished.metadata?.result?.stdout?.value).toBe("/middle\n/top\n");
  });

  test("keeps the records of operations of a running engine", async () => {
    const { uuid } = await engine.start({ image: base, command: "true" });
    await engine.finish({ uuid });
    expect((await prune(engine.directory, keeping())).operations.count).toBe(0);
    expect((await engine.fetch("GET", `/v1/operations/${uuid}`)).status).toBe(200);
    forgetOwners();
    expect((await prune(engine.directory, keeping())).operations.count).toBe(5);
    expect((await engine.fetch("GET", `/v1/operations/${uuid}`)).status).toBe(404);
  });
});

test("a missing directory has no usage", async () => {
  const directory = join(engine.directory, "fresh");
  expect(await measureUsage(directory, keeping())).toMatchObject({
    images: { count: 0 },
    layers: { count: 0, bytes: 0 },
  });
  expect(await prune(directory, keeping())).toMatchObject({ images: [], files: { count: 0 } });
});
