/** Caches of `type=gha`: what a build sends and fetches, branches and their rights, writers at once, and keys. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../../support/bough.ts";
import { type GithubCache, startGithubCache } from "../../support/github-cache.ts";
import { buildIn, newHome } from "../registry/homes.ts";
import { build, created, sourceOf } from "./jobs.ts";

let cache: GithubCache;
beforeEach(() => {
  cache = startGithubCache();
});
afterEach(() => cache[Symbol.asyncDispose]());

const step = (name: string) => `RUN echo ${name} > /${name}\n`;
const steps = (count: number) => Array.from({ length: count }, (_, at) => step(`file-${at}`)).join("");

test("30 layers are two entries, and an empty home that runs nothing writes none", async () => {
  const source = await sourceOf(steps(30));
  const first = await build(cache, { source });
  expect([first.exitCode, first.runs.length], first.stderr).toEqual([0, 30]);
  expect(first.stderr).toContain("GitHub's cache buildkit (refs/heads/main) is empty");
  expect(created(cache)).toBe(2);
  const second = await build(cache, { source });
  expect([second.exitCode, second.runs], second.stderr).toEqual([0, []]);
  expect(created(cache)).toBe(2);
}, 180_000);

test("an empty home fetches the index only when nothing has changed: less than 10 kB for 30 layers", async () => {
  const source = await sourceOf(steps(30));
  await build(cache, { source });
  const packs = cache.entries.filter(({ key }) => key.startsWith("bough-pack-"));
  expect(packs.length).toBe(1);
  [cache.requests.length, cache.sentBytes] = [0, 0];
  const built = await build(cache, { source });
  expect([built.exitCode, built.runs], built.stderr).toEqual([0, []]);
  expect(cache.sentBytes).toBeLessThan(10_000);
  expect(cache.requests.filter((request) => request.startsWith("GET")).length).toBeLessThanOrEqual(2);
}, 180_000);

test("a step that is new gets the layers below it, and adds one pack", async () => {
  await build(cache, step("one") + step("two"));
  const text = `${step("one")}${step("two")}RUN cat /one /two > /three\n`;
  const built = await build(cache, text);
  expect([built.exitCode, built.runs], built.stderr).toEqual([0, ["RUN cat /one /two > /three"]]);
  expect(created(cache)).toBe(4);
  expect((await build(cache, text)).runs).toEqual([]);
}, 180_000);

test("a layer larger than a block is sent in blocks, and comes back whole", async () => {
  const random = "RUN head -c 20000000 /dev/urandom > /large && sha256sum /large > /sum\n";
  const made = await build(cache, random);
  expect(made.exitCode, made.stderr).toBe(0);
  expect(created(cache)).toBe(2);
  const built = await build(cache, `${random}RUN sha256sum -c /sum\n`);
  expect([built.exitCode, built.runs], built.stderr).toEqual([0, ["RUN sha256sum -c /sum"]]);
}, 180_000);

test("builds that write one scope at once lose nothing", async () => {
  const names = ["a", "b", "c", "d"];
  // All of them read the scope while it is empty, and none may write before the last has read.
  let waiting = 0;
  const all = Promise.withResolvers<void>();
  cache.intercept = async (request) => {
    if (!request.url.endsWith("CreateCacheEntry") || waiting >= names.length) return undefined;
    waiting += 1;
    if (waiting === names.length) all.resolve();
    await all.promise;
    return undefined;
  };
  const made = await Promise.all(names.map((name) => build(cache, step(name))));
  for (const { exitCode, stderr } of made) {
    expect(exitCode, stderr).toBe(0);
    expect(stderr).not.toContain("[WARN]");
  }
  for (const name of names) expect((await build(cache, step(name))).runs).toEqual([]);
}, 180_000);

test("a later build of a job finds the layers that an earlier one has found in the cache", async () => {
  const source = await sourceOf(steps(3));
  await build(cache, { source });
  const home = newHome();
  expect((await build(cache, { source }, { home })).runs).toEqual([]);
  const built = await buildIn(home, source, ["--allow-local-from"], { environment: cache.environmentFor() });
  expect([built.exitCode, built.runs], built.stderr).toEqual([0, []]);
}, 180_000);

test("scopes are apart, and a build may read several", async () => {
  await build(cache, step("one"), { to: "type=gha,mode=max,scope=a" });
  await build(cache, step("two"), { to: "type=gha,mode=max,scope=a-b,c" });
  expect((await build(cache, step("one"), { from: "type=gha,scope=b" })).runs).toHaveLength(1);
  const from = "type=gha,scope=a";
  expect((await build(cache, step("one"), { from, to: "type=gha,scope=z" })).runs).toEqual([]);
}, 180_000);

test("a pull request reads what its base has written, and writes its own", async () => {
  const pull = ["refs/pull/7/merge", "refs/heads/main:read"];
  await build(cache, step("one"));
  const first = await build(cache, step("one") + step("two"), { refs: pull });
  expect(first.runs, first.stderr).toEqual(["RUN echo two > /two"]);
  expect(new Set(cache.entries.map(({ ref }) => ref))).toEqual(
    new Set(["refs/heads/main", "refs/pull/7/merge"]),
  );
  // What the base has is not sent again.
  const sizes = cache.entries
    .filter(({ key }) => key.startsWith("bough-pack-"))
    .map(({ content }) => content.byteLength);
  expect(sizes[1]).toBeLessThan((sizes[0] ?? 0) / 10);
  // The base has gone on, and the pull request has both.
  await build(cache, step("one") + step("three"));
  expect((await build(cache, step("one") + step("three"), { refs: pull })).runs).toEqual([]);
  expect((await build(cache, step("one") + step("two"), { refs: pull })).runs).toEqual([]);
  // The base does not see the pull request's.
  expect((await build(cache, step("one") + step("two"))).runs).toEqual(["RUN echo two > /two"]);
}, 180_000);

test("a token that can only read: the build uses the cache, and a word says that nothing is written", async () => {
  await build(cache, step("one"));
  const before = cache.entries.length;
  const built = await build(cache, step("one") + step("two"), { refs: ["refs/heads/main:read"] });
  expect([built.exitCode, built.runs], built.stderr).toEqual([0, ["RUN echo two > /two"]]);
  expect(built.stderr).toContain("the token of this job can only read");
  expect(cache.entries.length).toBe(before);
}, 180_000);

test.each([
  ["in its response", () => Response.json({ ok: false, message: "write denied" })],
  ["by its status", () => Response.json({ code: "permission_denied", msg: "write denied" }, { status: 403 })],
])(
  "a service that refuses entries %s costs the cache only, and is asked once",
  async (_, refuse) => {
    cache.intercept = ({ url }) => (url.endsWith("CreateCacheEntry") ? refuse() : undefined);
    // Large enough to be sent at once, beside what is sent at the end.
    const built = await build(cache, `RUN head -c 20000000 /dev/urandom > /large\n${step("one")}`);
    expect(built.exitCode, built.stderr).toBe(0);
    const [warning, ...others] = built.stderr
      .split("\n")
      .filter((line) => line.includes("nothing is written"));
    expect(others).toEqual([]);
    expect(warning).toContain("GitHub's cache buildkit (refs/heads/main): ");
    expect(warning).toContain("write denied");
    expect(created(cache)).toBe(1);
  },
  180_000,
);

test("what is left of a pack that is mostly unused is written anew", async () => {
  const large = "RUN head -c 3000000 /dev/urandom > /large\n";
  const to = "type=gha,mode=max,keep=2.5MB";
  const home = newHome();
  await build(cache, `${large}`, { to: "type=gha,mode=max", home });
  // The large layer is dropped, for its size.
  const built = await build(cache, step("one"), { to, home });
  expect(built.exitCode, built.stderr).toBe(0);
  const packs = cache.entries.filter(({ key }) => key.startsWith("bough-pack-"));
  expect(packs.length).toBe(2);
  // Without the first pack, nothing is missing.
  cache.entries.splice(cache.entries.indexOf(packs[0] as (typeof packs)[0]), 1);
  const found = await build(cache, `${step("one")}RUN cat /one\n`, { to });
  expect([found.exitCode, found.runs], found.stderr).toEqual([0, ["RUN cat /one"]]);
}, 180_000);

test("cache mounts travel in it", async () => {
  const words = ["--docker"];
  const to = "type=gha,mode=max,mounts=*";
  const mount = "RUN --mount=type=cache,target=/pkg,id=pkg";
  await build(cache, `${mount} echo kept > /pkg/file\n`, { words, to });
  const built = await build(cache, `${mount} grep kept /pkg/file\n`, { words, to });
  expect([built.exitCode, built.runs.length], built.stderr).toEqual([0, 1]);
}, 180_000);

test("an index is signed and verified as in other places", async () => {
  const keys = temporaryDirectory();
  for (const line of ["genpkey -algorithm ed25519 -out key", "pkey -in key -pubout -out pub"])
    Bun.spawnSync(["openssl", ...line.split(" ")], { cwd: keys });
  const sign = ["--cache-sign", join(keys, "key")];
  const verify = ["--cache-verify", join(keys, "pub")];
  await build(cache, step("one"), { to: "type=gha,scope=unsigned" });
  const distrusted = await build(cache, step("one"), {
    ...{ from: "type=gha,scope=unsigned", to: "type=gha,scope=other", words: verify },
  });
  expect(distrusted.runs).toHaveLength(1);
  expect(distrusted.stderr).toContain("it is not signed");
  await build(cache, step("one"), { words: sign });
  expect((await build(cache, step("one"), { words: [...sign, ...verify] })).runs).toEqual([]);
  const unkeyed = await build(cache, step("two"));
  expect(unkeyed.stderr).toContain("it is signed, and this build has no --cache-sign");
}, 180_000);

/** Returns whether a file below a directory has a text. */
function contains(directory: string, text: string): boolean {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .map((name) => join(directory, name))
    .filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true)
    .some((path) => readFileSync(path).includes(text));
}

test.each(["environment", "option"])(
  "a token of the %s is in no output, state or trace",
  async (place) => {
    const environment = cache.environmentFor();
    const { ACTIONS_RUNTIME_TOKEN: token = "" } = environment;
    const option = `,url_v2=${cache.url},token=${token}`;
    const given =
      place === "environment"
        ? { environment }
        : { environment: {}, from: `type=gha${option}`, to: `type=gha,mode=max${option}` };
    await build(cache, step("one"), given);
    const home = newHome();
    const trace = join(temporaryDirectory(), "trace");
    const built = await build(cache, `${step("one")}RUN env; cat /one\n`, {
      ...{ ...given, home, words: [`--trace=${trace}`, "--explain", "--progress=plain"] },
    });
    expect([built.exitCode, built.runs], built.stderr).toEqual([0, ["RUN env; cat /one"]]);
    for (const text of [token, "sig="]) {
      expect(built.stderr + built.stdout).not.toContain(text);
      expect(contains(home.home, text)).toBe(false);
      expect(readFileSync(trace, "utf8")).not.toContain(text);
    }
  },
  180_000,
);

test("cache list, show and remove take it", async () => {
  const environment = { ...cache.environmentFor(), BOUGH_HOME: temporaryDirectory() };
  await build(cache, step("one"), { to: "type=gha,mode=max,scope=app" });
  const bough = (...words: string[]) => runBough(words, { workingDirectory: "/", environment });
  const shown = await bough("cache", "show", "type=gha,scope=app");
  expect(shown.stdout, shown.stderr).toContain("RUN echo one > /one");
  const listed = await bough("cache", "list", "type=gha,scope=app", "-f", "json");
  expect(JSON.parse(listed.stdout)[0].layers, listed.stderr).toBeGreaterThan(0);
  const removed = await bough("cache", "remove", "type=gha,scope=app");
  expect(removed.exitCode).toBe(1);
  expect(removed.stderr).toContain("gh cache delete");
  const empty = await bough("cache", "show", "type=gha,scope=other");
  expect([empty.exitCode, empty.stderr.includes("there is no cache GitHub's cache other")]).toEqual([
    1,
    true,
  ]);
}, 60_000);
