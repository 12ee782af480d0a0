import { beforeEach, describe, expect, onTestFinished, test } from "bun:test";
import { appendFileSync, lstatSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openToHash } from "../../src/context/hashing/hash-file.ts";
import { fileStatOf } from "../../src/context/sources/entry-of.ts";
import type { UnhashedOptions } from "../../src/service/files/upload.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock, type ManualClock } from "../fake-service/manual-clock.ts";
import type { FakeServiceOptions } from "../fake-service/options.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { clientOf, rejection } from "./client.ts";

/** Content that is no multiple of a piece, and in which no piece repeats. */
const content = new Uint8Array(
  new Uint32Array(1_500_001).map((_, at) => Math.imul(at, 2_654_435_761)).buffer,
);
const sha256 = new Bun.CryptoHasher("sha256").update(content).digest("hex");

let path: string;
let clock: ManualClock;
let bytesRead: number;
let hashes: string[];
beforeEach(() => {
  path = join(temporaryDirectory(), "large");
  writeFileSync(path, content);
  // The clock stands still, so the service keeps up even on a slow machine. Waits before a repeat are skipped.
  clock = createManualClock((milliseconds) => milliseconds > 0 && milliseconds < 500);
  bytesRead = 0;
  hashes = [];
});

async function start(options: FakeServiceOptions = {}): Promise<FakeService> {
  const fake = await startFakeService(options);
  onTestFinished(() => fake.close());
  return fake;
}

function send({ url }: FakeService, options: Partial<UnhashedOptions> = {}) {
  const entry = {
    absolutePath: path,
    contextPath: "large",
    size: content.length,
    stat: fileStatOf(lstatSync(path)),
  };
  const open = () => {
    const file = openToHash(entry);
    const read: typeof file.read = (...words) => {
      const length = file.read(...words);
      bytesRead += length;
      return length;
    };
    return { ...file, read };
  };
  return clientOf(url, { clock }).service.sendUnhashed(
    { size: content.length, open },
    {
      signal: new AbortController().signal,
      onBytes: () => undefined,
      onHash: (hash) => void hashes.push(hash),
      ...options,
    },
  );
}

const lookups = (fake: FakeService) => fake.requestsTo(`GET /v1/files/${sha256}`);
const posts = (fake: FakeService) => fake.requestsTo("POST /v1/files");

test.each([true, false])(
  "a file is read once and never looked up (the service reports hashes: %p)",
  async (reports) => {
    const fake = await start({ reportsHashes: reports });
    const taken: number[] = [];
    const sent = await send(fake, { onBytes: (bytes) => void taken.push(bytes) });
    expect(sent).toEqual({ sha256, uuid: fake.state.fileId(sha256), isReused: false });
    expect({ hashes, bytesRead, last: taken.at(-1) }).toEqual({
      hashes: [sha256],
      bytesRead: content.length,
      last: content.length,
    });
    const headers = { "content-length": String(content.length) };
    expect(posts(fake)).toMatchObject([{ headers, bytes: { sha256 } }]);
    expect(lookups(fake)).toEqual([]);
  },
);

test("a file is read again for each attempt", async () => {
  const fake = await start();
  fake.intercept = async (request) => {
    fake.intercept = undefined;
    // The service responds before it has the whole body.
    await request.body?.getReader().read();
    return new Response("busy", { status: 503 });
  };
  expect(await send(fake)).toMatchObject({ sha256, uuid: fake.state.fileId(sha256) });
  expect(posts(fake).map(({ status }) => status)).toEqual([503, 201]);
  expect(hashes).toEqual([sha256]);
});

test("a file is looked up if the response is lost", async () => {
  const fake = await start();
  fake.intercept = async (request) => {
    fake.intercept = undefined;
    await fake.handle(request);
    return new Response("gone", { status: 502 });
  };
  expect(await send(fake)).toMatchObject({ sha256, uuid: fake.state.files.get(sha256)?.uuid ?? "none" });
  expect({ bytesRead, lookups: lookups(fake).length }).toEqual({
    bytesRead: content.length,
    lookups: 1,
  });
});

test("a refused file is still hashed completely", async () => {
  const fake = await start({ intercept: () => Response.json({ error: "too large" }, { status: 413 }) });
  expect(await rejection(send(fake))).toMatchObject({ message: expect.stringContaining("413") });
  expect(hashes).toEqual([sha256]);
});

describe("if the service is slow, a file", () => {
  /** Makes the service read no body before a lookup. */
  function makeSlow(fake: FakeService): void {
    fake.intercept = async ({ method }) => {
      if (method !== "POST") return undefined;
      while (lookups(fake).length === 0) await Bun.sleep(1);
      return undefined;
    };
  }

  async function sendSlowly(fake: FakeService) {
    makeSlow(fake);
    const sent = send(fake);
    while (posts(fake).length === 0) await Bun.sleep(1);
    await clock.advance(500);
    return sent;
  }

  test.each([true, false])(
    "is looked up, then sent completely (the service reports hashes: %p)",
    async (reportsHashes) => {
      const fake = await start({ reportsHashes });
      const sent = await sendSlowly(fake);
      expect(sent).toEqual({ sha256, uuid: fake.state.fileId(sha256), isReused: false });
      expect(posts(fake)).toMatchObject([{ bytes: { sha256 } }]);
      expect(hashes).toEqual([sha256]);
    },
  );

  test("is not sent completely if the service has it", async () => {
    const fake = await start();
    const { uuid } = await send(fake);
    fake.clearRequests();
    expect(await sendSlowly(fake)).toEqual({ sha256, uuid, isReused: true });
    expect(lookups(fake)).toHaveLength(1);
  });
});

describe.each([
  ["grows", () => appendFileSync(path, "more")],
  ["shrinks", () => truncateSync(path, 3_000_000)],
  ["is written over", () => writeFileSync(path, content.toReversed())],
])("a file that %s while it is sent", (_, change) => {
  test.each([true, false])("is an error (the service reports hashes: %p)", async (reportsHashes) => {
    const fake = await start({ reportsHashes });
    fake.intercept = () => {
      change();
      return undefined;
    };
    expect(await rejection(send(fake))).toMatchObject({ message: "large changed while the build read it" });
    expect(hashes).toEqual([]);
  });
});

test("an interruption ends an upload at once", async () => {
  const fake = await start({ intercept: () => new Promise(() => {}) });
  const interrupt = new AbortController();
  const failed = rejection(send(fake, { signal: interrupt.signal }));
  while (posts(fake).length === 0) await Bun.sleep(1);
  const reason = new Error("Ctrl-C");
  interrupt.abort(reason);
  expect(await failed).toBe(reason);
});
