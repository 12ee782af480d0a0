/** Linux reports an error of the disk to one sync only, so what was not on the disk then counts as lost, whatever syncs later. */

import { afterEach, beforeEach, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { openDatabase } from "../../src/database.ts";
import { checkEngine } from "../../src/engine/check/check.ts";
import { migrations } from "../../src/engine/engine-directory.ts";
import { makeLayout } from "../../src/engine/layout.ts";
import { lostLayers, recordFailedSync, recordSynced } from "../../src/engine/records/unsynced-layers.ts";
import { HostFiles } from "../../src/service/wire/file.ts";
import { openInput } from "../support/engine.ts";
import { failFirst, lost, manySmall, notKept, SyncedEngine, untilFailed } from "../support/synced-engine.ts";

let engines: SyncedEngine;
beforeEach(() => {
  engines = new SyncedEngine();
});
afterEach(() => engines.remove());

const dropped =
  "writing to the disk failed before a layer was on the disk: images built on it must be built again";

test("a lost layer that could not be removed is damage, and the next engine drops it", async () => {
  const { engine, base, image } = await engines.openWithLayer();
  engines.inDatabase((database) => recordFailedSync(database, { layers: [], startedAt: Date.now() }));
  await engine.close();
  const { damage } = await checkEngine(engines.directory, {
    signal: new AbortController().signal,
    onProgress: () => undefined,
  });
  expect(damage).toEqual([
    expect.objectContaining({ problem: "it was not completely written to the disk", images: [image] }),
  ]);
  expect(await engines.hasAfterwards([base, image])).toEqual([true, false]);
  expect(engines.warnings).toEqual([dropped]);
});

test("a sync that can't be started loses nothing: the next one gets the errors", async () => {
  const { engine, base } = await engines.openWithBase();
  await engine.engine.close();
  const broken = await engines.open(engines.fakeSync("", "/nowhere"));
  const { image = "" } = await broken.run(base, "echo > /kept");
  // As a build does before it prints its image.
  expect(await broken.engine.settle?.(image)).toBe(true);
  await broken.engine.close();
  expect(engines.warnings).toEqual([
    expect.stringMatching(/^the newest layers may not be written to the disk yet: /),
  ]);
  expect(engines.unsynced()).toHaveLength(1);
  expect(await engines.hasAfterwards([image])).toEqual([true]);
  expect(engines.unsynced()).toEqual([]);
});

test.each([
  ["lacks the options that other commands need", `exit 1`],
  ["does not answer", `sleep 60`],
])("a sync fails where tar %s: its layer is lost", async (_, tar) => {
  const { engine, base } = await engines.openWithBase(failFirst);
  engines.fake("tar", tar);
  const { image = "" } = await engine.run(base, "echo > /lost");
  await engine.engine.close();
  expect(engines.warnings).toEqual([lost]);
  expect(await engines.hasAfterwards([base, image])).toEqual([true, false]);
});

test("a sync that can't be started is reported again after one that could", async () => {
  const { engine, base } = await engines.openWithBase(`[ -e "$gate" ] || exit 127`);
  const runAndSettle = async () =>
    engine.engine.settle?.((await engine.run(base, "echo > /kept")).image ?? "");
  await runAndSettle();
  writeFileSync(engines.gate, "");
  await runAndSettle();
  expect(engines.unsynced()).toEqual([]);
  rmSync(engines.gate);
  await runAndSettle();
  await engine.engine.close();
  const late = expect.stringMatching(/^the newest layers may not be written to the disk yet: /);
  expect(engines.warnings).toEqual([late, late]);
});

test.each(["HUP", "INT", "TERM"])(
  "SIG%s to all processes of a service does not end a sync",
  async (signal) => {
    const { engine, image } = await engines.openWithLayer(`kill -${signal} $$`);
    await engine.close();
    expect(engines.warnings).toEqual([]);
    expect(await engines.hasAfterwards([image])).toEqual([true]);
  },
);

test("an early sync fails: its layer is lost, but not one that was begun later", async () => {
  const { engine, base } = await engines.openWithBase(failFirst);
  const host_files = new HostFiles(() => engines.hostFiles(manySmall));
  const stdin = { bytes: new Uint8Array(), close: false };
  const started = { uuid: await engine.spawn({ image: base, command: "cat", stdin, host_files }) };
  await untilFailed(engines);
  await engine.closeInput(started);
  expect(await engine.finish(started)).toMatchObject({ status: "FAILED", error: notKept });
  const { image: later = "" } = await engine.run(base, "echo > /kept");
  await engine.engine.close();
  expect([engines.syncs(), engines.warnings]).toEqual([2, [lost]]);
  expect(await engines.hasAfterwards([later])).toEqual([true]);
});

test("an engine that closes waits for a sync that is under way", async () => {
  Bun.spawnSync(["mkfifo", engines.gate]);
  const { engine, base, image } = await engines.openWithLayer(
    `! mkdir "$gate.passed" || { read -r line < "$gate"; echo 'sync: Input/output error' >&2; exit 1; }`,
  );
  while (engines.syncs() === 0) await Bun.sleep(5);
  const closed = engine.close();
  while (engines.syncs() === 1) await Bun.sleep(5);
  await appendFile(engines.gate, "\n");
  await closed;
  expect(engines.warnings).toEqual([lost]);
  expect(await engines.hasAfterwards([base, image])).toEqual([true, false]);
});

test("a command of another process was running: its layer is lost", async () => {
  const { engine, base } = await engines.openWithBase(failFirst);
  const other = await engines.open();
  const started = await other.start({ image: base, command: "cat > /kept", stdin: openInput });
  await engine.runWith(base, engines.hostFiles(manySmall), "true", { disposable: true });
  await untilFailed(engines);
  await other.closeInput(started);
  expect(await other.finish(started)).toMatchObject({ status: "FAILED", error: notKept });
  await other.engine.close();
  await engine.engine.close();
  expect(engines.warnings).toEqual([lost]);
  expect(await engines.hasAfterwards([base])).toEqual([true]);
});

test("an engine waits for its early sync if a command of another process is running", async () => {
  const { engine, base } = await engines.openWithBase(`read -r line < "$gate"; ${failFirst}`);
  Bun.spawnSync(["mkfifo", engines.gate]);
  const other = await engines.open();
  const started = await other.start({ image: base, command: "cat > /kept", stdin: openInput });
  await engine.runWith(base, engines.hostFiles(manySmall), "true", { disposable: true });
  const closed = engine.engine.close();
  await appendFile(engines.gate, "\n");
  await closed;
  await other.closeInput(started);
  expect(await other.finish(started)).toMatchObject({ status: "FAILED", error: notKept });
  await other.engine.close();
});

test("layers that another process noted as synced since the error are lost", () => {
  const layout = makeLayout(engines.directory);
  const database = openDatabase(engines.gate, migrations);
  const add = (id: number, time: number) =>
    database.run("INSERT INTO layers (id, depth, created_at) VALUES (?, 1, ?)", [id, time]);
  // The first layer was on the disk before the sync began, the second was not, and the third was made during the sync.
  add(1, 100);
  add(2, 100);
  add(3, 200);
  recordFailedSync(database, { layers: [2], startedAt: 150 });
  expect(lostLayers({ database, layout })).toEqual([2, 3]);
  recordSynced(database, [2, 3], "this boot");
  expect(lostLayers({ database, layout })).toEqual([2, 3]);
  database.close();
});
