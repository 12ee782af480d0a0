/** Several builds write one scope at once, and some are killed: no finished write is lost, and every index is valid. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createIndexReader } from "../../src/builder/scopes/read-index.ts";
import { emptyIndex, type ScopeIndex } from "../../src/builder/scopes/scope-index.ts";
import { createScopePlace } from "../../src/builder/scopes/service-place.ts";
import { writeScopeIndex } from "../../src/builder/scopes/write-index.ts";
import { systemClock } from "../../src/clock.ts";
import { createService } from "../../src/service/client.ts";
import type { Fetch } from "../../src/service/service.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { seededRandom } from "../support/random.ts";

let service: FakeService;
let base: string;
beforeEach(async () => {
  service = await startFakeService({ events: false });
  base = service.state.addImage("base:1");
});
afterEach(() => service.close());

const send: Fetch = (input, init) => fetch(input, init);
const none = new Set<string>();

function connect(over: Fetch = send) {
  const { signal } = new AbortController();
  return createService({ fetch: over, baseUrl: service.url, userAgent: "test", clock: systemClock, signal });
}

function open(over: Fetch = send) {
  const { signal } = new AbortController();
  const warn = (text: string) => {
    throw new Error(text);
  };
  const place = createScopePlace("main", { service: connect(over), signal, warn });
  return { place, reader: createIndexReader(place, { warn }), warn };
}

/** Writes the layer with this number to the scope. */
async function write(number: number, { over = send } = {}): Promise<void> {
  const { place, reader, warn } = open(over);
  const additions = { index: layerOf(number), sent: none };
  await writeScopeIndex(place, additions, {
    ...{ reader, gone: none, bases: new Set([base]), trusts: true, clock: systemClock, warn },
  });
}

function layerOf(number: number): ScopeIndex {
  const index = emptyIndex();
  const now = Date.now();
  index.layers.set(hashOf(number), {
    ...{ image: `image-${number}`, operation: null, title: `RUN ${number}`, madeAt: now, usedAt: now },
    ...{ bytes: null, seconds: null, by: null },
  });
  return index;
}

const hashOf = (number: number) => number.toString(16).padStart(64, "0");

/** Reads the scope; throws if an index is damaged. */
async function read(): Promise<ScopeIndex> {
  const { reader } = open();
  const found = await reader.read();
  reader.report(found);
  return found.index;
}

test("a writer that read the scope before another one wrote it loses no layer of the other", async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const slow: Fetch = async (input, init) => {
    // The last moment: the writer is about to move the scope's tag.
    if (init?.method === "PATCH" && String(init.body).endsWith(':v1"}')) await held;
    return send(input, init);
  };
  const one = write(1, { over: slow });
  await write(2);
  release();
  await one;
  expect([...(await read()).layers.keys()].sort()).toEqual([hashOf(1), hashOf(2)]);
});

test("twelve writers at once lose no layer, and the next one leaves two tags", async () => {
  const random = seededRandom(7);
  const slow: Fetch = async (input, init) => {
    await Bun.sleep(random() * 5);
    const answer = await send(input, init);
    await Bun.sleep(random() * 5);
    return answer;
  };
  const count = 12;
  await Promise.all(Array.from({ length: count }, (_, number) => write(number, { over: slow })));
  expect((await read()).layers.size).toBe(count);
  // Makes the indexes of these writers old by the service's clock.
  service.state.images.forEach((image) => {
    Object.defineProperty(image, "created_at", { value: "2020-01-01T00:00:00Z" });
  });
  await write(count);
  expect((await read()).layers.size).toBe(count + 1);
  expect([...service.state.tags.keys()].filter((tag) => tag.startsWith("bough-cache/main:v1"))).toHaveLength(
    2,
  );
});

test("100 random kills of two writers lose no finished write", async () => {
  const random = seededRandom(11);
  const finished = new Set<string>();
  let kills = 0;
  for (let number = 0; kills < 100; number += 2) {
    const ends = await Promise.all([
      writeUntilKilled(number, Math.floor(random() * 16), random() < 0.5),
      writeUntilKilled(number + 1, Math.floor(random() * 16), random() < 0.5),
    ]);
    for (const [at, hasFinished] of ends.entries())
      if (hasFinished) finished.add(hashOf(number + at));
      else kills++;
    const { layers } = await read();
    expect([...finished].filter((hash) => !layers.has(hash))).toEqual([]);
  }
  // A later write works as usual.
  await write(1_000_000);
  const { layers } = await read();
  expect(layers.has(hashOf(1_000_000))).toBe(true);
  expect([...finished].filter((hash) => !layers.has(hash))).toEqual([]);
}, 180_000);

/** Writes, and dies at request number `at`, which the service receives or not. Resolves to true if it has ended before. */
async function writeUntilKilled(number: number, at: number, isReceived: boolean): Promise<boolean> {
  const death = Promise.withResolvers<false>();
  const never = new Promise<never>(() => {});
  let requests = 0;
  const mortal: Fetch = async (input, init) => {
    if (requests > at) return never;
    if (requests++ < at) return send(input, init);
    if (isReceived) await send(input, init);
    death.resolve(false);
    return never;
  };
  return Promise.race([death.promise, write(number, { over: mortal }).then(() => true)]);
}
