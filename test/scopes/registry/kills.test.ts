/** Builds that are killed while they write a cache, or fetch layers from it: the next builds end right, and the cache is whole. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { digestOf } from "../../../src/image/digest.ts";
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

/** Starts a build in a process of its own. */
function startBuild(home: Home, words: readonly string[]) {
  placeFiles(home, source);
  return Bun.spawn([compileBough(), "--local", "build", home.context, ...words], {
    env: { PATH: process.env.PATH ?? "", HOME: home.home, BOUGH_HOME: home.home },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
}

/** Runs a build that is killed when it sends a request that `isMoment`; `isHalf`: in the middle of the response. */
async function buildKilled(home: Home, words: readonly string[], isMoment: IsMoment, isHalf = false) {
  const child = startBuild(home, words);
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
async function expectRecovered(home: Home, words: readonly string[], file: string): Promise<string[]> {
  const next = await buildIn(home, source, words);
  expect(next.exitCode, next.stderr).toBe(0);
  expect(next.stderr).not.toContain("[WARN] cache");
  const bough = ({ context, home: state }: Home, ...command: string[]) =>
    runBough(["--local", ...command], { workingDirectory: context, environment: { BOUGH_HOME: state } });
  const checked = await bough(home, "engine", "check");
  expect(checked.exitCode, checked.stdout).toBe(0);
  const cold = newHome();
  const found = await buildIn(cold, source, words);
  expect([found.exitCode, found.runs], found.stderr).toEqual([0, []]);
  const ran = await bough(cold, "run", found.image ?? "", "--", "cat", "/one", file);
  expect(ran.stdout, ran.stderr).toBe("one\none\n");
  return next.runs;
}

interface Manifest {
  config: { digest: string };
  layers: { digest: string }[];
}

/** Checks that a registry has all that its cache names. */
async function expectWhole(name: string): Promise<void> {
  const repository = `http://${registry.host}/v2/${name}`;
  const response = await fetch(`${repository}/manifests/main`, { headers: { accept: manifestType } });
  const { config, layers } = (await response.json()) as Manifest;
  for (const { digest } of [config, ...layers])
    expect((await fetch(`${repository}/blobs/${digest}`, { method: "HEAD" })).status).toBe(200);
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
    const runs = await expectRecovered(home, cacheOf(name), "/two");
    await expectWhole(name);
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
    expect(await expectRecovered(home, cacheOf(name), "/three")).toEqual(["RUN cat /one > /three"]);
    await expectWhole(name);
  },
  120_000,
);

const blobsOf = (directory: string) => {
  const path = join(directory, "blobs/sha256");
  return existsSync(path) ? readdirSync(path) : [];
};
const isUnfinished = (name: string) => name.startsWith(".");
const inDirectory = (directory: string) => [
  "--docker",
  `--cache-from=type=local,src=${directory}`,
  `--cache-to=type=local,dest=${directory},mode=max`,
];

const readBlob = (directory: string, digest: string) =>
  readFileSync(join(directory, "blobs", digest.replace(":", "/")));

function manifestIn(directory: string): Manifest {
  const { manifests } = JSON.parse(readFileSync(join(directory, "index.json"), "utf8"));
  return JSON.parse(readBlob(directory, manifests[0].digest).toString());
}

/** Checks that a directory has all that its cache names, with the right content. */
function expectWholeDirectory(directory: string): void {
  const { config, layers } = manifestIn(directory);
  for (const { digest } of [config, ...layers]) expect(digestOf(readBlob(directory, digest))).toBe(digest);
}

test.each<[string, (directory: string) => boolean]>([
  ["writes a layer", (directory) => blobsOf(directory).some(isUnfinished)],
  ["has written a layer", (directory) => blobsOf(directory).some((name) => !isUnfinished(name))],
  ["has written the list", (directory) => existsSync(join(directory, "index.json"))],
])(
  "a build that is killed when it %s in a directory",
  async (_, isMoment) => {
    edit("echo one > /one", "echo one > /one; head -c 8000000 /dev/urandom > /large");
    // A build may have ended before the moment is seen.
    for (let isKilled = false; !isKilled; ) {
      const [home, directory] = [newHome(), temporaryDirectory()];
      const child = startBuild(home, inDirectory(directory));
      while (child.exitCode === null && !isMoment(directory)) await Bun.sleep(1);
      child.kill("SIGKILL");
      await child.exited;
      isKilled = child.signalCode === "SIGKILL";
      await expectRecovered(home, inDirectory(directory), "/two");
      expectWholeDirectory(directory);
    }
  },
  120_000,
);

test("a build that is killed when it has read half of a layer from a directory", async () => {
  const directory = temporaryDirectory();
  edit("", "");
  await buildIn(newHome(), source, inDirectory(directory));
  edit("> /two", "> /three");
  // The layer of the first RUN, as a pipe: whoever reads it waits for its end.
  const { layers } = manifestIn(directory);
  const place = join(directory, "blobs", (layers.at(-2)?.digest ?? "").replace(":", "/"));
  renameSync(place, `${place}.whole`);
  Bun.spawnSync(["mkfifo", place]);
  const home = newHome();
  const child = startBuild(home, inDirectory(directory));
  const writer = Bun.spawn(
    ["sh", "-c", `exec > "$1"; head -c 50 "$1.whole"; echo >&2; exec sleep 60`, "sh", place],
    {
      stderr: "pipe",
    },
  );
  await writer.stderr.getReader().read();
  child.kill("SIGKILL");
  await child.exited;
  writer.kill("SIGKILL");
  renameSync(`${place}.whole`, place);
  expect(child.signalCode).toBe("SIGKILL");
  expect(await expectRecovered(home, inDirectory(directory), "/three")).toEqual(["RUN cat /one > /three"]);
  expectWholeDirectory(directory);
}, 120_000);
