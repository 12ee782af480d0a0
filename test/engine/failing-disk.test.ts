/** The engine's disk becomes read-only, reports errors, or has no room for a quota: messages name it, and reading goes on. */
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeFault, findDiskError, unusableDirectoryError } from "../../src/engine/faults.ts";
import { makeLayout } from "../../src/engine/layout.ts";
import { makeRouter } from "../../src/engine/router.ts";
import type { EngineState } from "../../src/engine/state.ts";
import { SyncedEngine } from "../support/synced-engine.ts";

let scratch: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "bough-failing-disk-"));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

const failed = (code: string, message = code, syscall = "write", path?: string) =>
  Object.assign(new Error(message), { code, syscall, path });
const place = { directory: "/e", realDirectory: "/e" };
const advice = "The disk may be failing: look for the kernel's errors with `dmesg`.";

describe.each<[string, Error, string, number]>([
  [
    "read-only",
    failed("EROFS"),
    `the disk that holds /e can't be written: the file system is read-only. ${advice}`,
    507,
  ],
  [
    "failing",
    failed("EIO"),
    `the disk that holds /e can't be written: the disk reports an input/output error. ${advice}`,
    507,
  ],
  [
    "gone",
    failed("EIO", "EIO", "lstat", "/e/layers/1"),
    `the disk that holds /e can't be written: the disk reports an input/output error. ${advice}`,
    507,
  ],
  [
    "failing under the records",
    failed("SQLITE_IOERR_WRITE", "disk I/O error"),
    `the disk that holds /e can't be written: disk I/O error. ${advice}`,
    507,
  ],
  ["full", failed("ENOSPC"), "no space left on the disk that holds /e", 507],
  [
    "full for its user",
    failed("EDQUOT"),
    "no space left on the disk that holds /e: the quota is used up",
    507,
  ],
  ["another one, and unreadable", failed("EIO", "EIO, open /f", "open", "/f"), "EIO, open /f", 500],
])("a disk that is %s", (_, error, message, status) => {
  test("is named", async () => {
    expect(describeFault(error, place)).toBe(message);
    const unusable = unusableDirectoryError(error, "/e");
    expect(unusable.message).toBe(`the engine's directory /e cannot be used: ${message}`);
    expect(unusable.hint === undefined).toBe(message.includes(advice) && !message.includes("read-only"));
  });

  test("has a status with which a client does not repeat what can't work, and a reason if it is not full", async () => {
    const respond = () => {
      throw error;
    };
    const state = { layout: place, layerSync: { recordFailures: () => {} } } as EngineState;
    const ask = makeRouter(state, [{ method: "GET", path: "/v1/x", respond }], async () => {});
    const response = await ask(new Request("http://engine/v1/x"));
    // The directory does not exist, which says nothing about the disk.
    const reason = message.includes(advice) ? { reason: "disk_failing" } : {};
    expect([response.status, await response.json()]).toEqual([status, { error: message, status, ...reason }]);
  });
});

test("a layer is on the disk of a directory that is named by a link", () => {
  const link = join(scratch, "link");
  symlinkSync("engine", link);
  mkdirSync(join(scratch, "engine"));
  const layout = makeLayout(link);
  const error = failed("EIO", "EIO", "lstat", join(layout.layers, "1"));
  expect(describeFault(error, layout)).toStartWith(`the disk that holds ${link} can't be written: `);
});

test("the system's reason replaces SQLite's, which is the same for all errors of a disk", () => {
  const module = JSON.stringify(join(import.meta.dir, "../../src/engine/faults.ts"));
  const script = `import { findDiskError } from ${module};
    const error = Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_WRITE" });
    console.log(findDiskError(error, { directory: ".", realDirectory: "." }).code);`;
  const shell = `mount -t tmpfs -o ro tmpfs . && cd "$PWD" && exec "$@"`;
  const { stdout, stderr } = Bun.spawnSync(
    ["unshare", "--mount", "sh", "-c", shell, "sh", process.execPath, "-e", script],
    { cwd: scratch },
  );
  expect([stdout.toString(), stderr.toString()]).toEqual(["EROFS\n", ""]);

  const unexplained = failed("SQLITE_IOERR_WRITE");
  expect(findDiskError(unexplained, { directory: scratch, realDirectory: scratch })).toBe(unexplained);
  expect(readdirSync(scratch)).toEqual([]);
});

test("images and their sizes are listed on a disk that can't be written", async () => {
  const engines = new SyncedEngine();
  onTestFinished(() => engines.remove());
  const { engine } = await engines.openWithBase();
  engines.inDatabase((database) =>
    database.run("CREATE TRIGGER full BEFORE UPDATE ON layers BEGIN SELECT RAISE(FAIL, 'disk full'); END"),
  );
  const { images } = await engine.json<{ images: unknown[] }>("GET", "/v1/images?sizes=1");
  expect(images).toEqual([expect.objectContaining({ size: expect.any(Number) })]);
  await engine.engine.close();
});
