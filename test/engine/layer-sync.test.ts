/** Layers are synced to disk after their commands end. A layer that was not synced when the machine stopped is dropped. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TestEngine } from "../support/engine.ts";

let scratch: string;
let warnings: string[];

beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "bough-layer-sync-"));
  warnings = [];
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

function open(path = process.env.PATH): Promise<TestEngine> {
  const warn = (message: string) => void warnings.push(message);
  return TestEngine.open({ directory: join(scratch, "engine"), environment: { PATH: path }, warn });
}

function inDatabase<T>(work: (database: Database) => T): T {
  const database = new Database(join(scratch, "engine/engine.db"));
  try {
    return work(database);
  } finally {
    database.close();
  }
}

const unsynced = () =>
  inDatabase((database) => database.query("SELECT layer FROM unsynced_layers").values().flat());

test("closing the engine, and not a command, waits until the layer is on the disk", async () => {
  const { engine, image } = await openWithLayer();
  expect(unsynced()).toHaveLength(1);
  await engine.close();
  expect(unsynced()).toEqual([]);
  const next = await open();
  expect((await next.run(image, "cat /kept")).stdout).toBe("kept\n");
  await next.engine.close();
  expect(warnings).toEqual([]);
});

test("a failed sync causes a warning, and after a reboot the layer is dropped", async () => {
  const programs = join(scratch, "programs");
  mkdirSync(programs);
  writeFileSync(join(programs, "sync"), "#!/bin/sh\necho 'sync: Input/output error' >&2\nexit 1\n", {
    mode: 0o755,
  });
  const { engine, base, image } = await openWithLayer(`${programs}:${process.env.PATH}`);
  await engine.close();
  expect(warnings).toEqual([
    expect.stringMatching(/^the newest layers may not be written to the disk yet: .*Input\/output error$/),
  ]);
  expect(unsynced()).toHaveLength(1);

  inDatabase((database) => database.run("UPDATE unsynced_layers SET boot = 'an earlier one'"));
  warnings = [];
  const next = await open();
  expect(warnings).toEqual([
    "the machine stopped before a layer was on the disk: images built on it must be built again",
  ]);
  expect((await next.fetch("GET", `/v1/inspect/${image}/list?path=/`)).status).toBe(404);
  expect((await next.run(base, "cat /kept")).exitCode).toBe(1);
  expect(unsynced()).toEqual([]);
  await next.engine.close();
});

/** Opens an engine with a new layer on a synced base. */
async function openWithLayer(path?: string) {
  const first = await open();
  const base = await first.importBase();
  await first.engine.close();
  const engine = await open(path);
  const { image = "" } = await engine.run(base, "echo kept > /kept");
  return { engine: engine.engine, base, image };
}
