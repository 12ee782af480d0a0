/** Layers are synced to disk after their commands end. A layer that was not synced when the machine stopped is dropped. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { manySmall, SyncedEngine } from "../support/synced-engine.ts";

let engines: SyncedEngine;
beforeEach(() => {
  engines = new SyncedEngine();
});
afterEach(() => engines.remove());

test("closing the engine, and not a command, waits until the layer is on the disk", async () => {
  const { engine, image } = await engines.openWithLayer();
  expect(engines.unsynced()).toHaveLength(1);
  await engine.close();
  expect(engines.unsynced()).toEqual([]);
  const next = await engines.open();
  expect((await next.run(image, "cat /kept")).stdout).toBe("kept\n");
  await next.engine.close();
  expect(engines.warnings).toEqual([]);
});

test("a layer that was not on the disk when the machine stopped is dropped", async () => {
  const { engine, base, image } = await engines.openWithLayer();
  engines.inDatabase((database) => database.run("UPDATE unsynced_layers SET boot = 'an earlier one'"));
  await engine.close();
  const next = await engines.open();
  expect((await next.fetch("GET", `/v1/inspect/${image}/list?path=/`)).status).toBe(404);
  expect(engines.warnings).toEqual([]);
  await next.recover();
  expect(engines.warnings).toEqual([
    "the machine stopped before a layer was on the disk: images built on it must be built again",
  ]);
  expect((await next.fetch("GET", `/v1/inspect/${image}/list?path=/`)).status).toBe(404);
  expect((await next.run(base, "cat /kept")).exitCode).toBe(1);
  expect(engines.unsynced()).toEqual([]);
  await next.engine.close();
});

test.each([
  ["a thousand small files are", manySmall],
  ["a large file is", [33 * 1024 * 1024]],
])("when %s copied, the sync begins before there is a layer", async (_, sizes) => {
  const { engine, base } = await engines.openWithBase("");
  const files = engines.hostFiles(sizes);
  const { exitCode, image } = await engine.runWith(base, files, "exit 3", { disposable: true });
  expect([exitCode, image]).toEqual([3, undefined]);
  while (engines.syncs() === 0) await Bun.sleep(5);
  await engine.engine.close();
  expect(engines.warnings).toEqual([]);
});

test("a few files wait for their layer", async () => {
  const { engine, base } = await engines.openWithBase("");
  await engine.runWith(base, engines.hostFiles([10, 1_000_000]), "true", { disposable: true });
  await engine.engine.close();
  expect(engines.syncs()).toBe(0);
});

test("the end of an engine without new layers does not wait for a sync", async () => {
  const { engine, base } = await engines.openWithBase("exec sleep 1000");
  await engine.runWith(base, engines.hostFiles(manySmall), "true", { disposable: true });
  while (engines.syncs() === 0) await Bun.sleep(5);
  await engine.engine.close();
  expect(engines.unsynced()).toEqual([]);
});
