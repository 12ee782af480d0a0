/** Caches of `type=gha` that are damaged, and a service that is busy or failing: the build ends right, and the cache is repaired. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type Clock, systemClock } from "../../../src/clock.ts";
import { createCacheService } from "../../../src/registry/github/cache-service.ts";
import { Secret } from "../../../src/secret.ts";
import { type GithubCache, type GithubEntry, startGithubCache } from "../../support/github-cache.ts";
import { newHome } from "../registry/homes.ts";
import { build } from "./jobs.ts";

let cache: GithubCache;
beforeEach(() => {
  cache = startGithubCache();
});
afterEach(() => cache[Symbol.asyncDispose]());

const steps = "RUN echo one > /one\nRUN head -c 2000000 /dev/urandom > /two\n";
const more = `${steps}RUN test "$(cat /one)" = one\n`;
const newest = (prefix: string) => {
  const entry = cache.entries.findLast(({ key }) => key.startsWith(prefix));
  if (entry === undefined) throw new Error(`there is no entry ${prefix}`);
  return entry;
};
const index = () => newest("bough-index-");
const pack = () => newest("bough-pack-");
const cut = (entry: GithubEntry, length: number) => {
  entry.content = entry.content.slice(0, length);
};
const flip = (entry: GithubEntry, start: number) => {
  for (let at = start; at < entry.content.byteLength; at++) entry.content[at] = ~(entry.content[at] ?? 0);
};
const remove = (entry: GithubEntry) => cache.entries.splice(cache.entries.indexOf(entry), 1);

test.each<[string, () => void, string]>([
  ["index is cut in its head", () => cut(index(), 20), "is not used: it is damaged"],
  ["index is cut in its directory", () => cut(index(), 300), "is not used: it is damaged"],
  ["index is cut behind its directory", () => cut(index(), 1000), "is not used: it is damaged"],
  ["index is something else", () => flip(index(), 0), "is not used: it is damaged"],
  ["index has another directory", () => flip(index(), 60), "is not used: it is damaged"],
  ["index is gone", () => remove(index()), "is empty"],
  ["pack is cut", () => cut(pack(), 1000), "is gone: building it again"],
  ["pack is empty", () => cut(pack(), 0), "is gone: building it again"],
  ["pack has other bytes", () => flip(pack(), 100), "is gone: building it again"],
  ["pack is gone", () => remove(pack()), "is gone: building it again"],
])(
  "a cache whose %s is a miss, and is written again",
  async (_, damage, says) => {
    await build(cache, steps);
    damage();
    const built = await build(cache, more);
    expect(built.exitCode, built.stderr).toBe(0);
    expect(built.runs.length).toBeGreaterThan(1);
    expect(built.stderr).toContain(says);
    const later = `${more}RUN test "$(cat /one)" = one && test -s /two\n`;
    const found = await build(cache, later);
    expect([found.exitCode, found.runs.length], found.stderr).toEqual([0, 1]);
  },
  180_000,
);

/** A clock whose waits pass at once, but for those that end a request without a response. */
function skippingClock(): Clock & { waits: number[] } {
  let skipped = 0;
  const waits: number[] = [];
  return {
    waits,
    now: () => systemClock.now() + skipped,
    async sleep(milliseconds, signal) {
      if (milliseconds >= 60_000) return systemClock.sleep(milliseconds, signal);
      waits.push(milliseconds);
      skipped += Math.ceil(milliseconds);
    },
  };
}

const isCall = ({ url }: Request) => url.includes("/twirp/");
const busy = (status: number, seconds: number) =>
  Response.json(
    { code: "resource_exhausted", msg: "slow down" },
    { status, headers: { "retry-after": String(seconds) } },
  );

describe("a service that is busy", () => {
  const { signal } = new AbortController();
  const open = (clock: Clock, maxWaitMilliseconds = 120_000) =>
    createCacheService({
      access: { url: cache.url, token: Secret.of(cache.tokenFor("refs/heads/main")), maxWaitMilliseconds },
      fetch: (input, init) => fetch(input, init),
      clock,
      environment: {},
    });

  test.each([429, 503])("is asked again after the time that it names: %d", async (status) => {
    let refused = 0;
    cache.intercept = () => (refused++ < 2 ? busy(status, 20) : undefined);
    const clock = skippingClock();
    expect(await open(clock).reserve("key", signal)).toStartWith(cache.url);
    expect(clock.waits.map((wait) => Math.round(wait / 1000))).toEqual([20, 20]);
  });

  test("is asked by all requests together: they wait once", async () => {
    let refused = 0;
    cache.intercept = () => (refused++ < 8 ? busy(429, 50) : undefined);
    const clock = skippingClock();
    const service = open(clock);
    await Promise.all(Array.from({ length: 8 }, (_, at) => service.reserve(`key-${at}`, signal)));
    expect(cache.entries).toHaveLength(8);
  });

  test.each([
    ["that asks for an hour", 429, 3600],
    ["that fails again and again", 500, 0],
    ["that is never ready", 503, 50],
  ])("%s is given up", async (_, status, seconds) => {
    cache.intercept = () => busy(status, seconds);
    const clock = skippingClock();
    await expect(open(clock).reserve("key", signal)).rejects.toThrow("slow down");
    expect(clock.waits.reduce((sum, wait) => sum + wait, 0)).toBeLessThan(120_000);
  });

  test("is waited for as long as timeout= says, and then left out with a word", async () => {
    await build(cache, steps);
    cache.intercept = (request) => (isCall(request) ? busy(429, 5) : undefined);
    const built = await build(cache, steps, {
      ...{ from: "type=gha,timeout=1s", to: "type=gha,timeout=1s", home: newHome() },
    });
    expect([built.exitCode, built.runs.length], built.stderr).toEqual([0, 2]);
    expect(built.stderr).toContain("[WARN] cache: GitHub's cache buildkit (refs/heads/main) is not used: ");
    expect(built.stderr).toContain("429 Too Many Requests: slow down");
    expect(built.stderr).toContain("[WARN] cache: nothing is written to GitHub's cache");
  });

  test("while layers are sent costs the cache only", async () => {
    cache.intercept = ({ method }) => (method === "PUT" ? busy(503, 300) : undefined);
    const built = await build(cache, steps);
    expect(built.exitCode, built.stderr).toBe(0);
    expect(built.stderr).toContain("[WARN] cache: nothing is written to GitHub's cache");
  });
});

test("an address that has expired is asked for again, and a transfer that breaks off is continued", async () => {
  await build(cache, steps);
  let reads = 0;
  cache.intercept = ({ method, headers }) => {
    if (method !== "GET") return undefined;
    reads += 1;
    if (reads === 2) return new Response("expired", { status: 403 });
    if (reads !== 3) return undefined;
    // Half of what was asked for, as if the connection had ended.
    const [, start = "0", end = "0"] = /^bytes=(\d+)-(\d+)$/.exec(headers.get("range") ?? "") ?? [];
    const { content } = pack();
    const middle = Math.floor((Number(start) + Number(end)) / 2);
    return new Response(content.slice(Number(start), middle), {
      status: 206,
      headers: { "content-range": `bytes ${start}-${middle - 1}/${content.byteLength}` },
    });
  };
  const built = await build(cache, more);
  expect([built.exitCode, built.runs.length], built.stderr).toEqual([0, 1]);
  expect(reads).toBeGreaterThan(3);
});

test("an index that another build has begun and never ended is passed over", async () => {
  await build(cache, steps);
  const { key, version, ref } = index();
  cache.entries.push({
    key: key.replace(/1$/, "2"),
    version,
    ref,
    content: new Uint8Array(0),
    isComplete: false,
  });
  const built = await build(cache, more);
  expect(built.exitCode, built.stderr).toBe(0);
  expect(index().key).toBe(key.replace(/1$/, "3"));
  expect((await build(cache, more)).runs).toEqual([]);
});
