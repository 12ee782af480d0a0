/** Layers are synced to disk after their commands end. A layer that was not synced when the machine stopped is dropped. */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LentFile } from "../../src/service/wire/file.ts";
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

const manySmall = Array.from({ length: 1_000 }, () => 10);
const oneLarge = [33 * 1024 * 1024];

test.each([
  ["a thousand small files are", manySmall],
  ["a large file is", oneLarge],
])("when %s copied, the sync begins before there is a layer", async (_, sizes) => {
  const { path, log } = fakeSync("");
  const { engine, base } = await openWithBase(path);
  const { exitCode, image } = await engine.runWith(base, lend(sizes), "exit 3", { disposable: true });
  expect([exitCode, image]).toEqual([3, undefined]);
  while (syncsIn(log) === 0) await Bun.sleep(5);
  await engine.engine.close();
  expect(warnings).toEqual([]);
});

test("a few files wait for their layer", async () => {
  const { path, log } = fakeSync("");
  const { engine, base } = await openWithBase(path);
  await engine.runWith(base, lend([10, 1_000_000]), "true", { disposable: true });
  await engine.engine.close();
  expect(syncsIn(log)).toBe(0);
});

test("the end of an engine without new layers does not wait for a sync", async () => {
  const { path, log } = fakeSync("exec sleep 1000");
  const { engine, base } = await openWithBase(path);
  await engine.runWith(base, lend(manySmall), "true", { disposable: true });
  while (syncsIn(log) === 0) await Bun.sleep(5);
  await engine.engine.close();
  expect(unsynced()).toEqual([]);
});

test("an error of the first sync counts, since the kernel does not report it to the next", async () => {
  const { path } = fakeSync(
    `[ "$(wc -l < "$log")" -gt 1 ] || { echo 'sync: Input/output error' >&2; exit 1; }`,
  );
  const { engine, base } = await openWithBase(path);
  await engine.runWith(base, lend(manySmall), "true");
  await engine.engine.close();
  expect(warnings).toEqual([expect.stringContaining("Input/output error")]);
  expect(unsynced()).toHaveLength(1);
});

/** Returns a PATH with a `sync` that notes its call, then runs `script`. */
function fakeSync(script: string): { path: string; log: string } {
  const programs = join(scratch, "programs");
  const log = join(scratch, "syncs");
  mkdirSync(programs);
  writeFileSync(join(programs, "sync"), `#!/bin/sh\nlog=${log}\necho "$@" >> "$log"\n${script}\n`, {
    mode: 0o755,
  });
  return { path: `${programs}:${process.env.PATH}`, log };
}

function syncsIn(log: string): number {
  return existsSync(log) ? readFileSync(log, "utf8").split("\n").length - 1 : 0;
}

/** Makes files of these sizes, and lends them. */
function lend(sizes: readonly number[]): LentFile[] {
  const directory = join(scratch, "lent");
  mkdirSync(directory);
  return sizes.map((size, index) => {
    const path = join(directory, `${index}`);
    const content = Buffer.alloc(size, index % 251);
    writeFileSync(path, content);
    const sha256 = new Bun.CryptoHasher("sha256").update(content).digest("hex");
    return { destination: `/f/${index}`, path, sha256, size, uid: 0, gid: 0, mode: 0o644, mtime: undefined };
  });
}

async function openWithBase(path?: string) {
  const first = await open();
  const base = await first.importBase();
  await first.engine.close();
  return { engine: await open(path), base };
}

/** Opens an engine with a new layer on a synced base. */
async function openWithLayer(path?: string) {
  const { engine, base } = await openWithBase(path);
  const { image = "" } = await engine.run(base, "echo kept > /kept");
  return { engine: engine.engine, base, image };
}
