/** Contents of cache mounts that may not be on the disk are lost with the layers that are not there. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { recordFailedSync } from "../../src/engine/records/unsynced-layers.ts";
import type { InstanceMount } from "../../src/service/wire/mount.ts";
import { openInput, type TestEngine } from "../support/engine.ts";
import { failFirst, SyncedEngine, untilFailed } from "../support/synced-engine.ts";

let engines: SyncedEngine;
beforeEach(() => {
  engines = new SyncedEngine();
});
afterEach(() => engines.remove());

const cache = (id: string): InstanceMount<string> => ({ target: "/c", type: "cache", id, sharing: "shared" });
const fill = (engine: TestEngine, base: string, id: string, rest = "true") =>
  engine.run(base, `echo ${id} > /c/x; ${rest}`, { mounts: [cache(id)] });
/** Returns the file that `fill` has made, if it is still there. */
const read = async (engine: TestEngine, base: string, id: string) =>
  (await engine.run(base, "cat /c/x 2>&1 || true", { mounts: [cache(id)], disposable: true })).stdout;
const directories = () => readdirSync(join(engines.directory, "caches"));
const gone = expect.stringContaining("No such file");

test("a cache used since the last layer on the disk starts anew after a failed sync", async () => {
  const { engine, base } = await engines.openWithBase();
  await fill(engine, base, "old");
  const { image = "" } = await engine.run(base, "echo > /kept");
  expect(await engine.engine.settle?.(image)).toBe(true);
  await fill(engine, base, "new", "exit 3");
  engines.inDatabase((database) => recordFailedSync(database, { layers: [], startedAt: Date.now() + 1 }));
  expect(await read(engine, base, "old")).toBe("old\n");
  expect(await read(engine, base, "new")).toEqual(gone);
  await engine.engine.close();
});

test("a cache in use during a failed sync is dropped by the next engine", async () => {
  const { engine, base } = await engines.openWithBase(failFirst);
  const other = await engines.open();
  const started = await other.start({
    ...{ image: base, command: "cat; echo in use > /c/x", stdin: openInput, mounts: [cache("used")] },
  });
  while (directories().length === 0) await Bun.sleep(5);
  const held = directories();
  await engine.run(base, "echo > /kept");
  await untilFailed(engines);
  expect(directories()).toEqual(held);
  expect(await read(engine, base, "used")).toEqual(gone);
  await other.closeInput(started);
  await other.finish(started);
  await other.engine.close();
  expect(await read(engine, base, "used")).toEqual(gone);
  await engine.engine.close();
  expect(await engines.hasAfterwards([base])).toEqual([true]);
  expect(directories()).not.toContain(held[0]);
});

test.each<[string, string, boolean]>([
  ["in use", "INSERT INTO cache_uses SELECT name, '', 'an-earlier-one.1.2', 'shared' FROM caches", false],
  ["used since the last layer on the disk", "UPDATE unsynced_layers SET boot = 'an earlier one'", false],
  [
    "of a command that was killed",
    "INSERT INTO cache_uses SELECT name, '', boot || '.1.2', 'shared' FROM caches, unsynced_layers",
    true,
  ],
])("when the machine stops, a cache %s", async (_, change, stays) => {
  const { engine, base } = await engines.openWithBase();
  await fill(engine, base, "kept", "echo > /kept");
  engines.inDatabase((database) => database.run(change));
  await engine.engine.close();
  const next = await engines.open();
  await next.recover();
  expect(directories()).toHaveLength(stays ? 1 : 0);
  expect(await read(next, base, "kept")).toEqual(stays ? "kept\n" : gone);
  await next.engine.close();
});
