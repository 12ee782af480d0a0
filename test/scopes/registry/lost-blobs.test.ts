/** A cache that has lost a blob, or whose index names another one in its place, costs the cache: no build, push or run. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { writeFiles } from "../../support/files.ts";
import { Registry } from "../../support/registry.ts";
import { openCache, putLayer, readCacheIndex, writeCacheIndex } from "./forge.ts";
import { type Front, startFront } from "./front.ts";
import { buildIn, type Home, newHome } from "./homes.ts";

let registry: Registry;
let front: Front;
let source: string;
beforeAll(async () => {
  registry = await Registry.start();
  registry.push(await makeBusyboxLayout(temporaryDirectory()), "base:1");
  front = startFront(registry);
  source = temporaryDirectory();
  writeFiles(source, { f: "v1\n" });
});
afterAll(async () => {
  await front[Symbol.asyncDispose]();
  await registry.stop();
});

const dockerfile = () => `FROM ${registry.host}/base:1\nCOPY f /f\nRUN cat /f > /sum; echo $0 > /shell\n`;

const bough = ({ context, home }: Home, ...words: string[]) =>
  runBough(["--local", ...words], { workingDirectory: context, environment: { BOUGH_HOME: home } });

let caches = 0;
/** Writes a cache, which then is without the layer of the base, or of the RUN. Returns the options that read it. */
async function spoiledCache(which: "base" | "RUN", how: "lost" | "damaged" | "forged"): Promise<string[]> {
  front.intercept = () => undefined;
  const ref = `spoiled-${++caches}:main`;
  writeFiles(source, { Dockerfile: dockerfile() });
  const to = `--cache-to=type=registry,ref=${registry.host}/${ref},mode=max`;
  await buildIn(newHome(), source, ["--docker", to]);
  const cache = openCache(`${registry.host}/${ref}`);
  const index = await readCacheIndex(cache);
  const chains = [...index.chains].sort(([, one], [, other]) => other.size - one.size);
  const top = [...index.images.values()].find(({ chain }) =>
    index.chains.values().every(({ below }) => below !== chain),
  )?.chain;
  const [key, chain] = (which === "base" ? chains[0] : chains.find(([each]) => each === top)) ?? [];
  if (key === undefined || chain === undefined) throw new Error("there is no such layer");
  if (how === "forged") {
    const { mediaType, digest, size } = await putLayer(cache, "etc/forged", "forged");
    index.chains.set(key, { ...chain, mediaType, digest, size });
    await writeCacheIndex(cache, index, [{ mediaType, digest, size }]);
  }
  front.intercept = ({ url }) => {
    if (how === "forged" || !url.endsWith(`/blobs/${chain.digest}`)) return undefined;
    return how === "lost" ? new Response("no", { status: 404 }) : new Response("other bytes");
  };
  return ["--docker", `--cache-from=type=registry,ref=${front.host}/${ref}`];
}

const harms = ["lost", "damaged", "forged"] as const;

test.each(harms)(
  "a base's layer that is %s in the cache comes from the base's own registry",
  async (how) => {
    const words = await spoiledCache("base", how);
    for (const use of [
      async (home: Home, image: string) => (await bough(home, "run", image, "cat", "/sum")).stdout,
      async (home: Home) => {
        const name = `${registry.host}/elsewhere-${caches}:1`;
        const pushed = await buildIn(home, source, [...words, "--tag", name, "--push"]);
        expect(pushed.exitCode, pushed.stderr).toBe(0);
        return (await bough(newHome(), "run", name, "cat", "/sum")).stdout;
      },
      async (home: Home) => {
        writeFiles(source, { Dockerfile: `${dockerfile()}RUN cat /sum > /more\n` });
        const built = await buildIn(home, source, ["--docker"]);
        expect([built.exitCode, built.runs], built.stderr).toEqual([0, ["RUN cat /sum > /more"]]);
        return (await bough(home, "run", built.image ?? "", "cat", "/more")).stdout;
      },
    ]) {
      writeFiles(source, { Dockerfile: dockerfile() });
      const home = newHome();
      const found = await buildIn(home, source, words);
      expect([found.exitCode, found.runs], found.stderr).toEqual([0, []]);
      expect(await use(home, found.image ?? "")).toBe("v1\n");
    }
  },
  180_000,
);

test.each(harms)(
  "a layer of a step that is %s in the cache is made again by whatever needs it",
  async (how) => {
    const words = await spoiledCache("RUN", how);
    writeFiles(source, { Dockerfile: dockerfile() });
    const remade = ["RUN cat /f > /sum; echo $0 > /shell"];
    const name = `${registry.host}/made-again-${caches}:1`;
    const home = newHome();
    const pushed = await buildIn(home, source, [...words, "--tag", name, "--push"]);
    expect([pushed.exitCode, pushed.runs], pushed.stderr).toEqual([0, remade]);
    expect(pushed.stderr).toContain("is gone: building it again");
    expect((await bough(newHome(), "run", name, "cat", "/sum")).stdout).toBe("v1\n");

    const output = temporaryDirectory();
    const exported = await buildIn(newHome(), source, [...words, "-o", output]);
    expect([exported.exitCode, exported.runs], exported.stderr).toEqual([0, remade]);
    expect(readFileSync(join(output, "sum"), "utf8")).toBe("v1\n");

    // Whether a layer is lost is seen at the end of a build. What is wrong with its bytes is seen when they come.
    const running = newHome();
    const built = await buildIn(running, source, [...words, "--tag", "app:1"]);
    expect([built.exitCode, built.runs], built.stderr).toEqual([0, how === "lost" ? remade : []]);
    const ran = await bough(running, "run", "app:1", "cat", "/sum");
    expect([ran.exitCode, ran.stdout]).toEqual(how === "lost" ? [0, "v1\n"] : [1, ""]);
    if (how === "lost") return;
    expect(ran.stderr).toContain("can no longer be used: its layer sha256:");
    if (how === "damaged") front.intercept = () => undefined;
    const again = await buildIn(running, source, [...words, "--tag", "app:1"]);
    expect([again.exitCode, again.runs], again.stderr).toEqual([0, how === "forged" ? remade : []]);
    expect((await bough(running, "run", "app:1", "cat", "/sum")).stdout).toBe("v1\n");
  },
  180_000,
);

test("a cache is written with the layers that were made again", async () => {
  const [, from = ""] = await spoiledCache("RUN", "lost");
  const to = from.replace("--cache-from", "--cache-to").replace(front.host, registry.host);
  writeFiles(source, { Dockerfile: dockerfile() });
  const built = await buildIn(newHome(), source, ["--docker", from, `${to},mode=max`]);
  expect([built.exitCode, built.runs.length], built.stderr).toEqual([0, 1]);
  const home = newHome();
  const found = await buildIn(home, source, ["--docker", from.replace(front.host, registry.host)]);
  expect([found.runs, (await bough(home, "run", found.image ?? "", "cat", "/sum")).stdout]).toEqual([
    [],
    "v1\n",
  ]);
}, 180_000);
