/** A layer that a failed sync has lost does not exist for running engines, of this process or another. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "../../src/database.ts";
import { migrations } from "../../src/engine/engine-directory.ts";
import { makeLayout } from "../../src/engine/layout.ts";
import { linkKnownBlobs } from "../../src/engine/records/imported-blobs.ts";
import { addOperation } from "../../src/engine/records/operations.ts";
import { recordFailedSync } from "../../src/engine/records/unsynced-layers.ts";
import { createLayerCheck } from "../../src/engine/records/whole-layers.ts";
import type { EngineState } from "../../src/engine/state.ts";
import { commitLayers } from "../../src/engine/unpack/import-image.ts";
import { unpackedPaths } from "../../src/engine/unpack/unpack-layers.ts";
import { bootId } from "../../src/lock-file.ts";
import { openInput, TestEngine } from "../support/engine.ts";
import { failFirst, lost, notKept, SyncedEngine, untilFailed } from "../support/synced-engine.ts";

let engines: SyncedEngine;
beforeEach(() => {
  engines = new SyncedEngine();
});
afterEach(() => engines.remove());

test("after a failed sync the running engines have neither the layer's image nor its files", async () => {
  const { engine, base, image } = await engines.openWithLayer(failFirst);
  const other = await engines.open();
  const tagged = await other.fetch("PATCH", `/v1/images/${image}/tag`, { tag: "kept:1" });
  expect(tagged.status).toBe(200);
  const [layer] = engines.unsynced();
  expect(engines.layers()).toContain(layer);
  await untilFailed(engines);
  for (const each of [engine, other.engine]) {
    const fetch = (method: string, path: string, body?: unknown) =>
      TestEngine.over(each)
        .fetch(method, path, body)
        .then(({ status }) => status);
    for (const path of [
      `/v1/inspect/${image}/list?path=/`,
      "/v1/inspect/?tag=kept:1",
      `/v1/images/${image}/layers`,
      `/v1/images/${image}/changes`,
    ])
      expect([path, await fetch("GET", path)]).toEqual([path, 404]);
    expect(await fetch("PATCH", `/v1/images/${image}/tag`, { tag: "kept:2" })).toBe(404);
    expect(await fetch("POST", "/v1/instances", { image, command: "true" })).toBe(404);
    const { images } = await TestEngine.over(each).json<{ images: { uuid: string }[] }>("GET", "/v1/images");
    expect(images.map(({ uuid }) => uuid)).toEqual([base]);
  }
  const { image: again = "" } = await other.run(base, "echo kept > /kept");
  await Promise.all([engine.close(), other.engine.close()]);
  expect(engines.warnings).toEqual([lost]);
  expect(await engines.hasAfterwards([base, again])).toEqual([true, true]);
  expect(engines.layers()).not.toContain(layer);
});

test("commands on a lost image run to their end, and what they change is not kept", async () => {
  const { engine, image } = await engines.openWithLayer(failFirst);
  const client = TestEngine.over(engine);
  const start = (command: string, disposable: boolean) =>
    client.start({ image, command, stdin: openInput, disposable });
  const started = [
    await start("cat; cat /kept", true),
    await start("cat; echo > /new", false),
    await start("cat", false),
  ];
  const [layer] = engines.unsynced();
  await untilFailed(engines);
  const answers = [];
  for (const each of started) {
    expect(engines.layers()).toContain(layer);
    await client.closeInput(each);
    const { status, error, metadata } = await client.finish(each);
    answers.push({ status, error, output: metadata?.result?.stdout?.value });
  }
  expect(answers).toEqual([
    { status: "SUCCESS", error: null, output: "kept\n" },
    { status: "FAILED", error: notKept, output: undefined },
    { status: "FAILED", error: notKept, output: undefined },
  ]);
  await engine.close();
  expect(await engines.hasAfterwards([image])).toEqual([false]);
  expect(engines.layers()).not.toContain(layer);
});

test("a lost base that a command still uses is replaced by importing it again", async () => {
  const engine = await engines.open(engines.fakeSync(failFirst));
  const base = await engine.importBase();
  const started = await engine.start({ image: base, command: "cat", stdin: openInput });
  await untilFailed(engines);
  expect((await engine.fetch("GET", `/v1/images/${base}/layers`)).status).toBe(404);
  const again = await engine.importBase();
  const { image = "" } = await engine.run(again, "echo > /kept");
  await engine.closeInput(started);
  await engine.finish(started);
  await engine.engine.close();
  expect(await engines.hasAfterwards([again, image])).toEqual([true, true]);
});

test("a failure that can't be recorded at once is recorded before a layer counts as synced", async () => {
  const { engine, base, image } = await engines.openWithLayer(failFirst);
  engines.inDatabase((database) =>
    database.run(
      "CREATE TRIGGER full BEFORE INSERT ON unsynced_layers BEGIN SELECT RAISE(FAIL, 'disk full'); END",
    ),
  );
  await untilFailed(engines);
  const statusOf = async (method: string, path: string, body?: unknown) =>
    (await TestEngine.over(engine).fetch(method, path, body)).status;
  expect(await statusOf("GET", `/v1/images/${image}/layers`)).toBe(500);
  expect(await engine.settle?.(image)).toBe(false);
  expect(await statusOf("POST", "/v1/instances", { image: base, command: "true" })).toBe(500);
  engines.inDatabase((database) => database.run("DROP TRIGGER full"));
  expect(await statusOf("POST", "/v1/instances", { image: base, command: "true" })).toBe(201);
  await engine.close();
  expect(await engines.hasAfterwards([base, image])).toEqual([true, false]);
});

test("an import that began before a failed sync does not restore another import's lost layer", () => {
  const layout = makeLayout(engines.directory);
  const database = openDatabase(layout.database, migrations);
  const layerSync = { request: () => undefined };
  const state = { database, layout, boot: bootId(), layerSync } as unknown as EngineState;
  const group = { from: 0, to: 1, content: "c0ffee", existing: undefined };
  const begin = () => {
    const uuid = crypto.randomUUID();
    addOperation(database, { uuid, kind: "image_import", owner: "", metadata: {}, createdAt: 0 });
    return { uuid, directory: join(layout.operations, uuid), marks: new Map() };
  };
  const keep = (run: ReturnType<typeof begin>) => {
    for (const place of Object.values(unpackedPaths(run.directory, group)))
      mkdirSync(place, { recursive: true });
    return commitLayers(state, [group], run, 0);
  };
  const slow = begin();
  const layer = keep(begin());
  expect(createLayerCheck(state)(layer)).toBe(true);
  recordFailedSync(database, { layers: [], startedAt: 0 });
  expect(keep(slow)).toBe(layer);
  expect(createLayerCheck(state)(layer)).toBe(false);
  expect(keep(begin())).toBe(layer);
  expect(createLayerCheck(state)(layer)).toBe(true);
  database.close();
});

test("the blobs of a lost base are fetched again", async () => {
  const { engine } = await engines.openWithBase();
  await engine.engine.close();
  const layout = makeLayout(engines.directory);
  const database = openDatabase(layout.database, migrations);
  const linked = () => {
    const directory = mkdtempSync(join(layout.scratch, "blobs-"));
    linkKnownBlobs({ database, layout }, directory);
    return readdirSync(directory).length;
  };
  expect(linked()).toBe(1);
  recordFailedSync(database, { layers: [], startedAt: 0 });
  expect(linked()).toBe(0);
  database.close();
});
