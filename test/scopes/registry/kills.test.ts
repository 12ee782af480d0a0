/** Builds that are killed while they write a cache, or fetch layers from it: the next builds end right, and the cache is whole. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { compileBough } from "../../support/compiled.ts";
import { writeFiles } from "../../support/files.ts";
import { Registry } from "../../support/registry.ts";
import { type Front, startFront } from "./front.ts";
import { buildIn, type Home, newHome, placeFiles } from "./homes.ts";

const manifestType = "application/vnd.oci.image.manifest.v1+json";

let registry: Registry;
let front: Front;
let source: string;
let text: string;
beforeAll(async () => {
  registry = await Registry.start();
  registry.push(await makeBusyboxLayout(temporaryDirectory()), "base:1");
  front = startFront(registry);
  text = `FROM ${registry.host}/base:1\nRUN echo one > /one\nRUN cat /one > /two\n`;
  source = temporaryDirectory();
  writeFiles(source, { Dockerfile: text });
});
afterAll(async () => {
  await front[Symbol.asyncDispose]();
  await registry.stop();
});

const cacheOf = (name: string) => {
  const ref = `type=registry,ref=${front.host}/${name}:main`;
  return ["--docker", `--cache-from=${ref}`, `--cache-to=${ref},mode=max`];
};
const edit = (from: string, to: string) => writeFileSync(join(source, "Dockerfile"), text.replace(from, to));

type IsMoment = (request: Request) => boolean;

/** Builds in a process of its own, which is killed when it sends a request that `isMoment`; `isHalf`: in the middle of the response. */
async function buildKilled(home: Home, words: readonly string[], isMoment: IsMoment, isHalf = false) {
  placeFiles(home, source);
  const child = Bun.spawn([compileBough(), "--local", "build", home.context, ...words], {
    env: { PATH: process.env.PATH ?? "", HOME: home.home, BOUGH_HOME: home.home },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const kill = async () => {
    child.kill("SIGKILL");
    await child.exited;
  };
  front.intercept = async (request) => {
    if (!isMoment(request)) return undefined;
    const response = isHalf ? await front.forward(request) : undefined;
    if (response === undefined) {
      await kill();
      return new Response("killed", { status: 503 });
    }
    const bytes = await response.bytes();
    async function* firstHalf() {
      yield bytes.subarray(0, bytes.byteLength / 2);
      await Bun.sleep(20);
      await kill();
    }
    return new Response(firstHalf(), { headers: response.headers });
  };
  const stderr = await new Response(child.stderr).text();
  await child.exited;
  front.intercept = () => undefined;
  expect(child.signalCode, stderr).toBe("SIGKILL");
}

/** Checks that the next build of the killed home ends as ever, and that an empty home finds all of it in the cache. */
async function expectRecovered(home: Home, name: string, file: string): Promise<string[]> {
  const next = await buildIn(home, source, cacheOf(name));
  expect(next.exitCode, next.stderr).toBe(0);
  expect(next.stderr).not.toContain("[WARN] cache");
  const bough = ({ context, home: state }: Home, ...words: string[]) =>
    runBough(["--local", ...words], { workingDirectory: context, environment: { BOUGH_HOME: state } });
  const checked = await bough(home, "engine", "check");
  expect(checked.exitCode, checked.stdout).toBe(0);
  const cold = newHome();
  const found = await buildIn(cold, source, cacheOf(name));
  expect([found.exitCode, found.runs], found.stderr).toEqual([0, []]);
  const ran = await bough(cold, "run", found.image ?? "", "--", "cat", "/one", file);
  expect(ran.stdout, ran.stderr).toBe("one\none\n");
  const repository = `http://${registry.host}/v2/${name}`;
  const manifest = (await (
    await fetch(`${repository}/manifests/main`, { headers: { accept: manifestType } })
  ).json()) as { config: { digest: string }; layers: { digest: string }[] };
  for (const { digest } of [manifest.config, ...manifest.layers])
    expect((await fetch(`${repository}/blobs/${digest}`, { method: "HEAD" })).status).toBe(200);
  return next.runs;
}

const sends =
  (method: string, part: RegExp): IsMoment =>
  (request) =>
    request.method === method && part.test(new URL(request.url).pathname);

/** The first request after one that `isMoment`. */
function after(isMoment: IsMoment): IsMoment {
  let isPast = false;
  return (request) => {
    if (isPast) return true;
    isPast = isMoment(request);
    return false;
  };
}

test.each<[string, IsMoment, boolean]>([
  ["begins to send a layer", sends("POST", /uploads/), false],
  ["ends a layer", sends("PUT", /uploads/), false],
  ["sends the manifest", sends("PUT", /manifests/), true],
  ["has sent the manifest", after(sends("PUT", /manifests/)), true],
])(
  "a build that is killed when it %s",
  async (what, isMoment, hasAllSteps) => {
    edit("", "");
    const name = what.replaceAll(" ", "-");
    const home = newHome();
    await buildKilled(home, cacheOf(name), isMoment);
    const runs = await expectRecovered(home, name, "/two");
    // Steps that had ended are not run again.
    if (hasAllSteps) expect(runs).toEqual([]);
  },
  120_000,
);

test.each([
  ["begins to fetch a layer", false],
  ["has fetched half of a layer", true],
])(
  "a build that is killed when it %s",
  async (what, isHalf) => {
    const name = what.replaceAll(" ", "-");
    edit("", "");
    await buildIn(newHome(), source, cacheOf(name));
    edit("> /two", "> /three");
    const home = newHome();
    let blobs = 0;
    // The first blob is the index.
    const isLayer: IsMoment = ({ method, url }) => method === "GET" && /\/blobs\//.test(url) && ++blobs === 2;
    await buildKilled(home, cacheOf(name), isLayer, isHalf);
    expect(await expectRecovered(home, name, "/three")).toEqual(["RUN cat /one > /three"]);
  },
  120_000,
);
