/** Several writers of one cache: targets of a bake, processes with one directory, and one whose work is replaced again and again. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { compileBough } from "../../support/compiled.ts";
import { writeFiles } from "../../support/files.ts";
import { Registry } from "../../support/registry.ts";
import { type Front, startFront } from "./front.ts";
import { buildIn, newHome } from "./homes.ts";

const manifestType = "application/vnd.oci.image.manifest.v1+json";

let registry: Registry;
let front: Front;
beforeAll(async () => {
  registry = await Registry.start();
  registry.push(await makeBusyboxLayout(temporaryDirectory()), "base:1");
  front = startFront(registry);
});
afterAll(async () => {
  await front[Symbol.asyncDispose]();
  await registry.stop();
});

/** Writes a bake file whose targets share a stage, and returns its directory. */
function bakeFile(count: number, caches: { from: string; to: (at: number) => string }): string {
  const directory = temporaryDirectory();
  const target = Object.fromEntries(
    Array.from({ length: count }, (_, at) => [
      `t${at}`,
      {
        context: `t${at}`,
        ...{ "cache-from": [caches.from], "cache-to": [caches.to(at)] },
      },
    ]),
  );
  writeFiles(directory, {
    "bake.json": JSON.stringify({ group: { default: { targets: Object.keys(target) } }, target }),
    ...Object.fromEntries(
      Object.keys(target).map((name) => [
        `${name}/Dockerfile`,
        `FROM ${registry.host}/base:1 AS tools\nRUN echo tool > /tool; echo more > /more\n` +
          `FROM ${registry.host}/base:1\nCOPY --from=tools /tool /tool\nRUN echo ${name} > /name\n`,
      ]),
    ),
  });
  return directory;
}

async function bake(directory: string) {
  const ended = await runBough(["--local", "bake", "-f", "bake.json"], {
    workingDirectory: directory,
    environment: { BOUGH_HOME: temporaryDirectory() },
  });
  return { ...ended, runs: ended.stderr.match(/ spawned op=\S+ RUN /g)?.length ?? 0 };
}

test.each([
  // The index, the inputs of steps, the base's layer, and those of the steps; with mode=min, not that of the other stage.
  ["mode=max", () => "max", 17],
  ["mode=min", () => "min", 16],
  ["both modes", (at: number) => (at % 2 === 0 ? "min" : "max"), 17],
])(
  "targets of a bake write one cache once, with all that they have made, in %s",
  async (what, modeOf, blobs) => {
    const name = `bake-${what.replace(/\W/g, "-")}`;
    const ref = `type=registry,ref=${front.host}/${name}`;
    const directory = bakeFile(12, { from: ref, to: (at) => `${ref},mode=${modeOf(at)}` });
    const manifests: string[] = [];
    front.intercept = ({ method, url }) => {
      if (method === "PUT" && url.includes("/manifests/")) manifests.push(url);
      return undefined;
    };
    const made = await bake(directory);
    expect([made.exitCode, made.runs, manifests.length], made.stderr).toEqual([0, 13, 1]);
    expect(made.stderr).toMatch(/\[INFO\] cache: \S+ has 14 layers, 14 new/);
    const url = `http://${registry.host}/v2/${name}/manifests/latest`;
    const manifest = (await (await fetch(url, { headers: { accept: manifestType } })).json()) as {
      layers: object[];
    };
    expect(manifest.layers).toHaveLength(blobs);
    const found = await bake(directory);
    expect([found.exitCode, found.runs, manifests.length], found.stderr).toEqual([0, 0, 1]);
    expect(`${made.stderr}${found.stderr}`).not.toContain("[WARN]");
  },
  180_000,
);

test("a bake that fails writes what its targets have made", async () => {
  front.intercept = () => undefined;
  const ref = `type=registry,ref=${front.host}/failing`;
  const directory = bakeFile(3, { from: ref, to: () => `${ref},mode=max` });
  const text = `FROM ${registry.host}/base:1\nRUN echo made > /made\nRUN false\n`;
  writeFiles(directory, { "t1/Dockerfile": text });
  expect((await bake(directory)).exitCode).toBe(1);
  writeFiles(directory, { "t1/Dockerfile": text.replace("false", "true") });
  const again = await bake(directory);
  expect(again.exitCode, again.stderr).toBe(0);
  expect(again.stderr).not.toMatch(/spawned op=\S+ RUN echo made/);
}, 180_000);

test("a cache that can't be used is reported once for all targets of a bake", async () => {
  front.intercept = () => undefined;
  const image = `type=registry,ref=${front.host}/base:1`;
  const made = await bake(bakeFile(3, { from: image, to: () => image }));
  expect(made.exitCode, made.stderr).toBe(0);
  expect(made.stderr.match(/\[WARN\] cache: .*/g)).toEqual([
    `[WARN] cache: ${front.host}/base:1 is not used: it is an image or another artifact, not a cache of bough`,
    `[WARN] cache: nothing is written to ${front.host}/base:1: it is an image or another artifact, not a cache of bough`,
  ]);
}, 180_000);

test("processes that write a cache in one directory at the same time lose nothing", async () => {
  const directory = join(temporaryDirectory(), "cache");
  const source = temporaryDirectory();
  writeFiles(source, {
    Dockerfile: `FROM ${registry.host}/base:1\nARG WRITER\nRUN echo $WRITER > /writer\n`,
  });
  const writers = Array.from({ length: 6 }, (_, at) => `--build-arg=WRITER=${at}`);
  const cache = (tag = "latest") => [
    "--docker",
    `--cache-from=type=local,src=${directory},tag=${tag}`,
    `--cache-to=type=local,dest=${directory},mode=max,tag=${tag}`,
  ];
  await Promise.all(
    writers.map(async (writer, at) => {
      const home = temporaryDirectory();
      // Another cache in the directory, too.
      const child = Bun.spawn(
        [compileBough(), "--local", "build", source, writer, ...cache(at === 0 ? "other" : undefined)],
        {
          env: { PATH: process.env.PATH ?? "", HOME: home, BOUGH_HOME: home },
          ...{ stdin: "ignore", stdout: "ignore", stderr: "pipe" },
        },
      );
      const stderr = await new Response(child.stderr).text();
      expect([await child.exited, stderr]).toEqual([0, expect.not.stringContaining("[WARN]")]);
    }),
  );
  for (const [at, writer] of writers.entries()) {
    const found = await buildIn(newHome(), source, [writer, ...cache(at === 0 ? "other" : undefined)]);
    expect([writer, found.exitCode, found.runs], found.stderr).toEqual([writer, 0, []]);
  }
}, 180_000);

test("a writer that others replace again and again says what is not in the cache", async () => {
  const source = temporaryDirectory();
  const dockerfile = `FROM ${registry.host}/base:1\nRUN echo one > /one\n`;
  writeFiles(source, { Dockerfile: dockerfile });
  const words = ["--docker", `--cache-to=type=registry,ref=${front.host}/replaced:main,mode=max`];
  const url = `http://${registry.host}/v2/replaced/manifests/main`;
  const headers = { accept: manifestType, "content-type": manifestType };
  front.intercept = () => undefined;
  await buildIn(newHome(), source, words);
  const other = await (await fetch(url, { headers })).text();
  front.intercept = async (request) => {
    if (request.method !== "PUT" || !request.url.includes("/manifests/")) return undefined;
    const response = await front.forward(request);
    await fetch(url, { method: "PUT", body: other, headers });
    return response;
  };
  writeFiles(source, { Dockerfile: `${dockerfile}RUN echo two > /two\n` });
  const built = await buildIn(newHome(), source, words);
  expect(built.exitCode, built.stderr).toBe(0);
  expect(built.stderr).toContain(
    `[WARN] cache: other builds have replaced ${front.host}/replaced:main 10 times: 1 of 2 layers of this build are not in it`,
  );
}, 180_000);
