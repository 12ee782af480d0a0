/** Jobs that are killed while they write GitHub's cache, at each request of the write: what was there before is whole, and the next job repairs. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { compileBough } from "../../support/compiled.ts";
import { type GithubCache, startGithubCache } from "../../support/github-cache.ts";
import { newHome, placeFiles } from "../registry/homes.ts";
import { build, sourceOf, wordsOf } from "./jobs.ts";

let cache: GithubCache;
beforeEach(() => {
  cache = startGithubCache();
});
afterEach(() => cache[Symbol.asyncDispose]());

const first = "RUN echo one > /one\n";
const second = `${first}RUN cat /one > /two\n`;

test.each([
  ["reserves the pack", "POST CreateCacheEntry", 1],
  ["sends the pack", "PUT /store/", 1],
  ["ends the pack", "POST FinalizeCacheEntryUpload", 1],
  ["reserves the index", "POST CreateCacheEntry", 2],
  ["sends the index", "PUT /store/", 2],
  ["ends the index", "POST FinalizeCacheEntryUpload", 2],
])(
  "a job that is killed when it %s",
  async (_, request, count) => {
    await build(cache, first);
    const source = await sourceOf(second);
    const home = newHome();
    placeFiles(home, source);
    cache.requests.length = 0;
    const child = Bun.spawn([compileBough(), "--local", "build", home.context, ...wordsOf({})], {
      env: {
        PATH: process.env.PATH ?? "",
        HOME: home.home,
        BOUGH_HOME: home.home,
        ...cache.environmentFor(),
      },
      stdin: "ignore",
      stdout: "ignore",
      stderr: "ignore",
    });
    cache.intercept = async () => {
      if (cache.requests.filter((each) => each === request).length < count) return undefined;
      child.kill("SIGKILL");
      await child.exited;
      return new Response("killed", { status: 500 });
    };
    await child.exited;
    cache.intercept = () => undefined;
    expect(child.signalCode).toBe("SIGKILL");
    // What had been written before is there, and an empty home adds the rest.
    const next = await build(cache, { source });
    expect([next.exitCode, next.runs], next.stderr).toEqual([0, ["RUN cat /one > /two"]]);
    expect(next.stderr).not.toContain("[WARN]");
    const found = await build(cache, { source });
    expect([found.exitCode, found.runs], found.stderr).toEqual([0, []]);
    const third = await build(cache, `${second}RUN test "$(cat /two)" = one\n`);
    expect([third.exitCode, third.runs], third.stderr).toEqual([0, ['RUN test "$(cat /two)" = one']]);
  },
  180_000,
);
