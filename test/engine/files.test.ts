import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { createService } from "../../src/service/client.ts";
import { TestEngine } from "../support/engine.ts";

const helloHash = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

let engine: TestEngine;
beforeAll(async () => {
  engine = await TestEngine.open();
});
afterAll(() => engine.close());

test("a content is stored once, and found by its SHA-256", async () => {
  const first = await engine.upload("hello\n");
  expect(first).toMatchObject({ sha256: helloHash, size: 6 });
  expect(await engine.upload("hello\n")).toMatchObject({ uuid: first.uuid, sha256: helloHash });
  expect(stored()).toEqual([helloHash]);
  expect(await engine.json("GET", `/v1/files/${helloHash}`)).toMatchObject({ uuid: first.uuid, size: 6 });
  const head = await engine.fetch("HEAD", `/v1/files/${helloHash}`);
  expect([head.status, await head.text()]).toEqual([200, ""]);
});

test("sending a large file in the same process does not block timers", async () => {
  const absolutePath = join(engine.directory, "large");
  const size = 256 * 1024 * 1024;
  writeFileSync(absolutePath, "");
  truncateSync(absolutePath, size);
  const sha256 = Bun.CryptoHasher.hash("sha256", new Uint8Array(size), "hex");
  const service = createService({
    fetch: (input, init) => engine.engine.fetch(input instanceof Request ? input : new Request(input, init)),
    baseUrl: "http://engine",
    userAgent: "test",
    clock: systemClock,
    signal: new AbortController().signal,
  });
  let turns = 0;
  let turnsWhileSending = 0;
  const others = setInterval(() => turns++, 0);
  await service.uploadFiles([{ absolutePath, sha256, size }], ({ files }) => {
    if (files === 0) turnsWhileSending = turns;
  });
  clearInterval(others);
  // A slice is 10 ms, and no machine processes 256 MiB in five slices.
  expect(turnsWhileSending).toBeGreaterThan(5);
});

test("an unknown file is 404", async () => {
  const response = await engine.fetch("GET", `/v1/files/${"0".repeat(64)}`);
  expect(await response.json()).toEqual({ error: expect.stringContaining("there is no file"), status: 404 });
  expect((await engine.fetch("HEAD", `/v1/files/${"0".repeat(64)}`)).status).toBe(404);
});

test("a stalled body ends with its request and leaves no file", async () => {
  const stop = new AbortController();
  const stalled = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode("and then nothing")),
  });
  const before = stored();
  const { signal } = stop;
  const request = new Request("http://engine/v1/files", { method: "POST", body: stalled, signal });
  const answer = engine.engine.fetch(request);
  await Bun.sleep(0);
  stop.abort();
  expect((await answer).ok).toBe(false);
  expect(stored()).toEqual(before);
  const scratch = join(engine.directory, "scratch");
  expect(readdirSync(scratch).flatMap((name) => readdirSync(join(scratch, name)))).toEqual([]);
});

test("an empty body is an empty file", async () => {
  expect((await engine.upload("")).size).toBe(0);
});

test("a body may be a stream of any length", async () => {
  const chunk = new Uint8Array(1 << 20).fill(7);
  let chunks = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (chunks++ < 64) controller.enqueue(chunk);
      else controller.close();
    },
  });
  const response = await engine.engine.fetch(new Request("http://engine/v1/files", { method: "POST", body }));
  expect(response.status).toBe(201);
  expect(await response.json()).toMatchObject({ size: 64 << 20 });
});

test("a body that is longer than the free space is refused before it is read", async () => {
  const request = new Request("http://engine/v1/files", {
    method: "POST",
    headers: { "content-length": String(2 ** 60) },
    body: new ReadableStream({ pull: () => new Promise(() => {}) }),
  });
  const response = await engine.engine.fetch(request);
  expect(response.status).toBe(507);
  expect(await response.text()).toContain("no space left on the disk");
});

test("closing the engine during an upload removes its partial file", async () => {
  const closed = await TestEngine.open();
  const scratch = join(closed.directory, "scratch");
  const { promise: isRead, resolve: read } = Promise.withResolvers<void>();
  let chunks = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (chunks++ > 0) read();
      else controller.enqueue(new Uint8Array(1 << 20));
      return chunks === 1 ? undefined : new Promise(() => {});
    },
  });
  void closed.engine.fetch(new Request("http://engine/v1/files", { method: "POST", body }));
  await isRead;
  expect(readdirSync(scratch, { recursive: true }).length).toBe(2);
  await closed.engine.close();
  expect(readdirSync(scratch)).toEqual([]);
  await closed.close();
});

test("a body that breaks off leaves no file", async () => {
  const before = stored();
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(new Uint8Array(100_000));
      controller.error(new Error("connection lost"));
    },
  });
  const response = await engine.engine.fetch(new Request("http://engine/v1/files", { method: "POST", body }));
  expect(response.status).toBe(500);
  expect(stored()).toEqual(before);
  for (const name of readdirSync(join(engine.directory, "scratch"))) {
    expect(readdirSync(join(engine.directory, "scratch", name))).toEqual([]);
  }
});

test("a file that a crash has truncated counts as missing, and can be sent again", async () => {
  const { sha256 } = await engine.upload("whole");
  truncateSync(path(sha256), 2);
  expect((await engine.fetch("GET", `/v1/files/${sha256}`)).status).toBe(404);
  await engine.upload("whole");
  expect(statSync(path(sha256)).size).toBe(5);
  rmSync(path(sha256));
  expect((await engine.fetch("HEAD", `/v1/files/${sha256}`)).status).toBe(404);
});

describe("the list of files", () => {
  test("has the newest file first, in pages, or one file by its hash", async () => {
    await engine.upload("next to last");
    const last = await engine.upload("last");
    const names = async (query: string) =>
      (await engine.json<{ files: { sha256: string }[] }>("GET", `/v1/files?${query}`)).files.map(
        (file) => file.sha256,
      );
    expect(await names("limit=1")).toEqual([last.sha256]);
    expect(await names("limit=1&offset=1")).not.toEqual([last.sha256]);
    expect(await names(`sha256=${helloHash}`)).toEqual([helloHash]);
  });
});

function stored(): string[] {
  return Array.from(new Bun.Glob("*/*").scanSync({ cwd: join(engine.directory, "files") }))
    .map((name) => name.slice(3))
    .sort();
}

function path(sha256: string): string {
  return join(engine.directory, "files", sha256.slice(0, 2), sha256);
}
