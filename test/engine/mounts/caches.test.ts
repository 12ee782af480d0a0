/** Mounts of type cache: their identity, contents, sharing and removal. */
import { describe, expect, test } from "bun:test";
import { lstatSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "../../../src/database.ts";
import { migrations } from "../../../src/engine/engine-directory.ts";
import { makeLayout } from "../../../src/engine/layout.ts";
import { planPrune, prune } from "../../../src/engine/prune/prune.ts";
import { measureUsage } from "../../../src/engine/prune/usage.ts";
import { takeCache } from "../../../src/engine/records/caches.ts";
import { readLayerTar } from "../../../src/image/tar-reader.ts";
import { cacheKeyOf, type InstanceMount } from "../../../src/service/wire/mount.ts";
import { openInput, TestEngine } from "../../support/engine.ts";
import { keeping } from "../../support/prune-selection.ts";
import { openSharedEngine } from "../../support/shared-engine.ts";

const { engine, base } = await openSharedEngine();

type Cache = Extract<InstanceMount<string>, { type: "cache" }>;
const cache = (id: string, sharing: Cache["sharing"] = "shared", more: Partial<Cache> = {}): Cache => ({
  ...{ target: "/c", type: "cache", id, sharing },
  ...more,
});
const run = (command: string, mount: Cache, image = base) => engine.run(image, command, { mounts: [mount] });

/** Starts a command that keeps its cache in use until `end`. */
async function hold(mount: Cache) {
  const started = await engine.start({
    ...{
      image: base,
      command: "echo held >> /c/held; echo rea''dy; read line",
      stdin: openInput,
      mounts: [mount],
    },
  });
  const has = async () => {
    const response = await engine.fetch("GET", `/v1/operations/${started.uuid}/events`);
    return (await response.text()).includes("ready");
  };
  return { ...started, has, end: () => engine.closeInput(started).then(() => engine.finish(started)) };
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await Bun.sleep(10);
}

test("a cache's files are there for the next command, and in no layer", async () => {
  const first = await run("echo kept > /c/x; touch /beside", cache("kept"));
  expect((await run("cat /c/x", cache("kept"))).stdout).toBe("kept\n");
  expect((await engine.run(first.image ?? "", "ls -d /beside; ls -d /c || echo none")).stdout).toBe(
    "/beside\nnone\n",
  );
});

test("a cache's files stay if the command fails, is killed at its timeout or is cancelled", async () => {
  await run("echo 1 >> /c/x; exit 3", cache("failed"));
  await engine.run(base, "echo 2 >> /c/x; sleep 60", { mounts: [cache("failed", "locked")], timeout: 1 });
  const cancelled = await hold(cache("failed", "locked"));
  await until(cancelled.has);
  await engine.fetch("DELETE", `/v1/operations/${cancelled.uuid}`);
  expect((await engine.finish(cancelled)).status).toBe("CANCELLED");
  expect((await run("cat /c/x /c/held", cache("failed", "locked"))).stdout).toBe("1\n2\nheld\n");
});

test.each<[string, Partial<Cache>, Partial<Cache>, boolean]>([
  ["another target", {}, { target: "/other/c" }, true],
  ["another sharing", {}, { sharing: "private" }, true],
  ["another mode", {}, { mode: "0700" }, false],
  ["another owner", {}, { uid: 5 }, false],
  ["the same owner", { uid: 5, gid: 6 }, { uid: 5, gid: 6 }, true],
  ["another id", {}, { id: "another" }, false],
  ["read-only", {}, { readonly: true }, true],
])("with %s, %j and then %j, it is the same cache: %p", async (what, one, other, isSame) => {
  await run("touch $(dirname /c/x)/x", cache(what, "shared", one));
  const { stdout } = await run("ls /c /other/c 2>/dev/null | grep x", cache(what, "shared", other));
  expect(stdout).toBe(isSame ? "x\n" : "");
});

test("a new cache has the requested owner and mode", async () => {
  const mount = cache("owned", "shared", { mode: "1770", uid: 5, gid: 6 });
  expect((await run("stat -c '%a %u:%g' /c", mount)).stdout).toBe("1770 5:6\n");
});

test("a read-only cache cannot be written", async () => {
  expect((await run("touch /c/x || echo no", cache("read", "shared", { readonly: true }))).stdout).toBe(
    "no\n",
  );
});

test("a new cache begins with an image's files, and does not change the image", async () => {
  const made = await engine.run(
    base,
    "mkdir -p /s/d; echo 1 > /s/d/x; ln -s /s/d /l; chmod 750 /s/d; chown 5 /s/d",
  );
  const mount = cache("filled", "shared", { image: made.image ?? "", source: "/l" });
  const command = "stat -c '%a %u' /c; cat /c/x; echo 2 >> /c/x";
  expect((await run(command, mount)).stdout).toBe("750 5\n1\n");
  expect((await run(command, mount)).stdout).toBe("750 5\n1\n2\n");
  expect((await engine.run(made.image ?? "", "cat /s/d/x")).stdout).toBe("1\n");
  const missing = await run("true", cache("filled", "shared", { image: made.image ?? "", source: "/none" }));
  expect(missing.operation.error).toContain("from /none: the image has no such directory");
});

test("the archive of a cache can be read while no command uses it", async () => {
  const path = `/v1/caches/${cacheKeyOf({ id: "read out", uid: 0, gid: 0, mode: 0o755 })}`;
  expect((await engine.fetch("GET", path)).status).toBe(404);
  const holder = await hold(cache("read out"));
  await until(holder.has);
  expect((await engine.fetch("GET", path)).status).toBe(409);
  await holder.end();
  const names: string[] = [];
  const { body } = await engine.fetch("GET", path);
  for await (const { name } of readLayerTar(body ?? new ReadableStream(), "it")) names.push(name);
  expect(names).toEqual(["./", "held"]);
  // An abandoned answer does not keep it.
  await (await engine.fetch("GET", path)).body?.cancel();
  await engine.fetch("HEAD", path);
  expect((await run("cat /c/held", cache("read out", "locked"))).stdout).toBe("held\n");
});

describe("sharing", () => {
  test.each<[first: Cache["sharing"], second: Cache["sharing"], what: "same" | "another"]>([
    ["shared", "shared", "same"],
    ["shared", "private", "another"],
    ["private", "private", "another"],
    ["private", "shared", "another"],
    ["locked", "shared", "another"],
  ])("%s and then %s gives the %s cache", async (first, second, what) => {
    const id = `${first} ${second}`;
    const holder = await hold(cache(id, first));
    await until(holder.has);
    const { stdout } = await run("cat /c/held || echo new", cache(id, second));
    expect(stdout).toBe(what === "same" ? "held\n" : "new\n");
    await holder.end();
    expect((await run("cat /c/held", cache(id, second))).stdout).toBe("held\n");
  });

  test("locked makes the second command wait for the first", async () => {
    const holder = await hold(cache("lock", "locked"));
    await until(holder.has);
    const second = run("cat /c/held", cache("lock", "locked"));
    expect(await Promise.race([second, Bun.sleep(400).then(() => "waiting")])).toBe("waiting");
    await holder.end();
    expect((await second).stdout).toBe("held\n");
  });

  test("locked waits until the operation's timeout or cancellation", async () => {
    const holder = await hold(cache("wait", "locked"));
    await until(holder.has);
    const late = await engine.run(base, "true", { mounts: [cache("wait", "locked")], timeout: 1 });
    expect(late.operation.error).toContain(
      'the cache "wait" is locked by another command: the mounts were not in place within 1 second',
    );
    const started = await engine.start({ image: base, command: "true", mounts: [cache("wait", "locked")] });
    await engine.fetch("DELETE", `/v1/operations/${started.uuid}`);
    expect((await engine.finish(started)).status).toBe("CANCELLED");
    await holder.end();
  });

  test("locked does not block two mounts of one cache in one command, or cause a deadlock", async () => {
    const two = (first: string, second: string) =>
      engine.run(base, "touch /a/x; ls /b", {
        mounts: [cache(first, "locked", { target: "/a" }), cache(second, "locked", { target: "/b" })],
      });
    expect((await two("one", "one")).stdout).toBe("x\n");
    const ended = await Promise.all(
      Array.from({ length: 6 }, (_, index) => (index % 2 ? two("p", "q") : two("q", "p"))),
    );
    expect(ended.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0, 0, 0]);
  });

  test("locked ends with a killed process", () => {
    const database = openDatabase(join(engine.directory, "engine.db"), migrations);
    const layout = makeLayout(engine.directory);
    const take = (operation: string) =>
      takeCache({ database, layout }, { key: "0".repeat(64), sharing: "locked", operation, now: 1 });
    const name = take("one");
    expect(take("two")).toBeUndefined();
    database.run("UPDATE cache_uses SET owner = 'boot.1.2' WHERE operation = 'one'");
    expect(take("two")).toBe(name);
    database.run("DELETE FROM caches WHERE name = ?", [name ?? ""]);
    database.close();
  });
});

test("a generation begins empty, keeps what its commands made, and is the newest cache from then on; a few older ones stay", async () => {
  const of = (generation?: string) => cache("generations", "shared", generation ? { generation } : {});
  const add = async (file: string, generation?: string) =>
    (await run(`touch /c/${file}; ls /c`, of(generation))).stdout.split("\n").filter(Boolean);
  expect(await add("a")).toEqual(["a"]);
  expect(await add("b", "first")).toEqual(["b"]);
  // Two builds at the same time.
  const holder = await hold(of("second"));
  await until(holder.has);
  expect(await add("c", "first")).toEqual(["b", "c"]);
  expect(await add("d", "second")).toEqual(["d", "held"]);
  await holder.end();
  expect(await add("e")).toEqual(["d", "e", "held"]);
  for (const generation of ["3", "4", "5"]) expect(await add("f", generation)).toEqual(["f"]);
  expect(await add("g", "first")).toEqual(["g"]);
  expect(await add("h", "5")).toEqual(["f", "h"]);
});

describe("the source of a cache can be", () => {
  test.each<[what: string, make: string, source: string, outcome: string]>([
    ["a directory", "mkdir -p /c/a/b; touch /c/a/b/x", "/a/b", "x\n"],
    ["a link in the cache", "mkdir -p /c/v1; touch /c/v1/x; ln -s v1 /c/cur", "/cur", "x\n"],
    ["the cache itself by ..", "touch /c/x", "/../..", "x\n"],
    ["a directory with dots for a name", "mkdir /c/...; touch /c/.../x", "/...", "x\n"],
    ["what is not there", "true", "/none", "there is no such directory"],
    ["a link to nothing", "ln -s none /c/l", "/l", "there is no such directory"],
    ["a link that leads up", "ln -s ../.. /c/l", "/l", "a symbolic link there leads out of the cache"],
    ["a link to this machine's own", "ln -s /etc /c/l", "/l", "a symbolic link there leads out of the cache"],
    [
      "a directory behind such a link",
      "ln -s / /c/l",
      "/l/etc",
      "a symbolic link there leads out of the cache",
    ],
    ["a link to another cache", "ln -s .. /c/l", "/l", "a symbolic link there leads out of the cache"],
  ])("%s", async (what, make, source, outcome) => {
    await run(make, cache(`part ${what}`));
    const { stdout, operation } = await run("ls /c", cache(`part ${what}`, "shared", { source }));
    expect(operation.error ?? stdout).toContain(outcome);
  });
});

test("df counts caches, prune removes those not in use, and the next engine those without a record", async () => {
  const directory = engine.directory;
  await run("head -c 100000 /dev/zero > /c/x", cache("measured"));
  const usage = (await measureUsage(directory, keeping(base))).caches;
  expect(usage.count).toBe(readdirSync(join(directory, "caches")).length);
  expect(usage.bytes).toBeGreaterThan(100_000);
  const holder = await hold(cache("in use"));
  await until(holder.has);
  const selection = keeping(base);
  expect((await planPrune(directory, selection)).caches.count).toBe(usage.count);
  expect((await prune(directory, selection)).caches.count).toBe(usage.count);
  expect(readdirSync(join(directory, "caches"))).toHaveLength(1);
  await holder.end();
  expect((await run("cat /c/held", cache("in use"))).stdout).toBe("held\n");
  expect((await run("ls /c", cache("measured"))).stdout).toBe("");

  const orphan = join(directory, "caches", `${"f".repeat(64)}.00000000`);
  mkdirSync(orphan);
  writeFileSync(join(orphan, "x"), "");
  const next = await TestEngine.open({ directory });
  await next.recover();
  await next.engine.close();
  expect(lstatSync(orphan, { throwIfNoEntry: false })).toBeUndefined();
  expect(readdirSync(join(directory, "caches"))).toHaveLength(2);
});
