/** Images that only add configuration to a base of the registry that they are pushed to: nothing of the base is fetched. */
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { startFront } from "../scopes/registry/front.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";

setDefaultTimeout(120_000);

/** Of the base's layer, which random bytes make as large in the registry. */
const layerBytes = 8 * 1024 * 1024;
/** Manifests and configurations are smaller. */
const thinBytes = 32 * 1024;
const configuration = 'ARG V=1\nENV A=$V PATH=/opt:$PATH\nLABEL a=b\nUSER 1000\nEXPOSE 80\nCMD ["x"]\n';

let registry: Registry;
let other: Registry;
let layer: string;
beforeAll(async () => {
  [registry, other] = [await Registry.start(), await Registry.start()];
  const prepare = (root: string) => writeFileSync(join(root, "large"), randomBytes(layerBytes));
  registry.push(await makeBusyboxLayout(temporaryDirectory(), { prepare }), "base:1");
  layer = (await manifestOf("base")).layers[0].digest;
  const architectures = ["amd64", "arm64"];
  registry.push(await makeBusyboxLayout(temporaryDirectory(), { prepare, architectures }), "both:1");
  const OnBuild = ["RUN wc -c /large"];
  registry.push(
    await makeBusyboxLayout(temporaryDirectory(), { prepare, configuration: { OnBuild } }),
    "triggers:1",
  );
});
afterAll(() => Promise.all([registry.stop(), other.stop()]));

let directory: string;
let home: string;
/** The repository of this test. */
let app: string;
let count = 0;
beforeEach(() => {
  [directory, home] = [temporaryDirectory(), temporaryDirectory()];
  app = `${registry.host}/app${++count}`;
});

interface Manifest {
  config: { digest: string };
  layers: [{ digest: string }];
}

async function manifestOf(name: string): Promise<Manifest> {
  const headers = { accept: "application/vnd.oci.image.manifest.v1+json" };
  const response = await fetch(`http://${registry.host}/v2/${name}/manifests/1`, { headers });
  return (await response.json()) as Manifest;
}

/** Runs a command; `requests` are those that the registry got, `bytes` what it sent. */
async function bough(...words: string[]) {
  const [bytes, before] = [registry.sentBytes(), registry.requests().length];
  const ended = await runBough(["--local", ...words], {
    workingDirectory: directory,
    environment: { BOUGH_HOME: home },
  });
  return { ...ended, bytes: registry.sentBytes() - bytes, requests: registry.requests().slice(before) };
}

function build(dockerfile: string, ...words: string[]) {
  writeFiles(directory, { Dockerfile: dockerfile, file: "content" });
  return bough("build", "--docker", ".", "-f", "Dockerfile", "--format", "json", ...words);
}

const pushTo = (...places: string[]) => [...places.flatMap((place) => ["--tag", `${place}:1`]), "--push"];

/** Returns what the images of the home have left in registries. */
async function missingLayers(): Promise<number> {
  const listed: { missing_layers?: number }[] = JSON.parse((await bough("images", "-f", "json")).stdout);
  return listed.reduce((sum, { missing_layers: missing = 0 }) => sum + missing, 0);
}

test("nothing of the base but its manifest and configuration is fetched, and its layer is mounted", async () => {
  const dockerfile = `FROM ${registry.host}/base:1 AS first\nENV B=2\nFROM first\n${configuration}`;
  const thin = await build(dockerfile, ...pushTo(app));
  expect(thin.exitCode, thin.stderr).toBe(0);
  expect(thin.bytes).toBeLessThan(thinBytes);
  const { config } = await manifestOf("base");
  expect(thin.requests.filter((request) => request.includes("/v2/base/"))).toEqual([
    "GET /v2/base/manifests/1",
    `GET /v2/base/blobs/${config.digest}`,
  ]);
  const mounts = thin.requests.filter((request) => request.includes("mount="));
  expect(mounts).toEqual([expect.stringContaining(`from=base&mount=${encodeURIComponent(layer)}`)]);
  // The configuration is the only blob that is sent.
  expect(thin.requests.filter((request) => request.startsWith("PUT /v2/app")).length).toBe(2);

  home = temporaryDirectory();
  expect((await bough("images", "import", `${registry.host}/base:1`)).exitCode).toBe(0);
  const whole = await build(dockerfile, ...pushTo(`${registry.host}/whole`));
  expect(JSON.parse(thin.stdout).digest).toBe(JSON.parse(whole.stdout).digest);
});

test("bases of several platforms are not fetched either", async () => {
  const platforms = ["--platform", "linux/amd64,linux/arm64"];
  const thin = await build(`FROM ${registry.host}/both:1\n${configuration}`, ...platforms, ...pushTo(app));
  expect(thin.exitCode, thin.stderr).toBe(0);
  expect(thin.bytes).toBeLessThan(thinBytes);
});

test.each([
  ["COPY", "COPY file /new/", []],
  ["WORKDIR", "WORKDIR /new", []],
  ["RUN", "RUN true", []],
  ["another output", "", ["-o", "type=oci,dest=out.tar"]],
  ["another registry", "", ["-t", "OTHER/app:1"]],
])("a build with %s imports its base", async (_, instruction, words) => {
  const more = words.map((word) => word.replace("OTHER", other.host));
  const built = await build(`FROM ${registry.host}/base:1\n${instruction}\n`, ...more, ...pushTo(app));
  expect(built.exitCode, built.stderr).toBe(0);
  expect(built.requests).toContain(`GET /v2/base/blobs/${layer}`);
  expect(await missingLayers()).toBe(0);
});

test("a later build fetches what its RUN needs, once, and so does a trigger of the base", async () => {
  const from = `FROM ${registry.host}/base:1\n${configuration}`;
  await build(from, ...pushTo(app));
  expect(await missingLayers()).toBeGreaterThan(0);
  for (const name of ["one", "two"]) {
    const built = await build(`${from}RUN wc -c /large && echo ${name}\n`);
    expect(built.stderr).toContain(`${layerBytes} /large`);
    expect(built.requests.includes(`GET /v2/base/blobs/${layer}`), built.stderr).toBe(name === "one");
  }
  expect(await missingLayers()).toBe(0);
  const triggered = await build(`FROM ${registry.host}/triggers:1\nCMD x\n`, ...pushTo(app));
  expect(triggered.stderr).toContain(`${layerBytes} /large`);
  expect(triggered.exitCode).toBe(0);
});

test("an import brings what the machine lacks", async () => {
  await build(`FROM ${registry.host}/base:1\n${configuration}`, ...pushTo(app));
  expect((await bough("images", "import", `${registry.host}/base:1`)).exitCode).toBe(0);
  expect(await missingLayers()).toBe(0);
});

test("the result can be run and exported, here and elsewhere", async () => {
  const built = await build(`FROM ${registry.host}/base:1\nCMD ["wc", "-c", "/large"]\n`, ...pushTo(app));
  const { image } = JSON.parse(built.stdout);
  expect((await bough("images", "export", image, "docker-archive:out.tar")).exitCode).toBe(0);
  const inArchive = ["tar", "-xOf", join(directory, "out.tar"), "manifest.json"];
  expect(JSON.parse(Bun.spawnSync(inArchive).stdout.toString())[0].Layers).toHaveLength(1);
  const pushed = await bough("push", image, `${other.host}/app${count}:1`);
  expect(pushed.exitCode, pushed.stderr).toBe(0);
  for (const place of [image, `${app}:1`, `${other.host}/app${count}:1`]) {
    if (place !== image) home = temporaryDirectory();
    if (place !== image) await bough("images", "import", place);
    const ran = await bough("run", place, "wc", "-c", "/large");
    expect([place, ran.stdout], ran.stderr).toEqual([place, `${layerBytes} /large\n`]);
  }
});

test("a registry that mounts nothing gets the layer", async () => {
  await using front = startFront(registry, (request) => {
    const url = new URL(request.url);
    if (!url.searchParams.has("mount")) return undefined;
    return front.forward(new Request(`${url.origin}${url.pathname}`, { method: "POST" }));
  });
  const place = `${front.host}/app${count}`;
  const built = await build(`FROM ${front.host}/base:1\n${configuration}`, ...pushTo(place));
  expect(built.exitCode, built.stderr).toBe(0);
  // Passed on from the base's repository: this machine keeps none of it.
  expect(await missingLayers()).toBeGreaterThan(0);
  home = temporaryDirectory();
  const ran = await bough("run", `${place}:1`, "wc", "-c", "/large");
  expect(ran.stdout, ran.stderr).toBe(`${layerBytes} /large\n`);
});

test("the error for a wrong base is that of any other build", async () => {
  const closed = await Registry.start({ username: "ada", password: "secret" });
  try {
    for (const [host, name] of [
      [registry.host, "none:1"],
      [registry.host, "base:none"],
      [closed.host, "base:1"],
      ["127.0.0.1:1", "base:1"],
    ]) {
      const dockerfile = `FROM ${host}/${name}\n${configuration}`;
      const pushed = await build(dockerfile, ...pushTo(`${host}/app`));
      const plain = await build(dockerfile);
      const errorIn = ({ stderr }: { stderr: string }) =>
        JSON.parse(/^\{"error".*/m.exec(stderr)?.[0] ?? "{}");
      expect([pushed.exitCode, errorIn(pushed)]).toEqual([1, errorIn(plain)]);
      expect(errorIn(pushed).error.message).toContain(`${host}/${name}`);
    }
  } finally {
    await closed.stop();
  }
});

test("if the base has gone since, a build that needs it says so, and one without does too", async () => {
  let isGone = false;
  await using front = startFront(registry, (request) =>
    isGone && new URL(request.url).pathname.startsWith("/v2/base/")
      ? new Response('{"errors":[{"code":"MANIFEST_UNKNOWN"}]}', { status: 404 })
      : undefined,
  );
  const from = `FROM ${front.host}/base:1\n${configuration}`;
  const place = `${front.host}/app${count}`;
  expect((await build(from, ...pushTo(place))).exitCode).toBe(0);
  isGone = true;
  for (const dockerfile of [from, `${from}RUN true\n`]) {
    const built = await build(dockerfile, ...pushTo(place));
    expect(built.exitCode, built.stderr).toBe(1);
    expect(built.stderr).toContain(`${front.host}/base:1`);
  }
  isGone = false;
  expect((await build(`${from}RUN true\n`, ...pushTo(place))).exitCode).toBe(0);
});

test("twenty targets of a bake fetch nothing, and the base comes once with one that needs it", async () => {
  const targetOf = (name: string, instruction: string) => ({
    "dockerfile-inline": `FROM ${registry.host}/base:1\n${instruction}\n`,
    tags: [`${app}/${name}:1`],
  });
  const thin = Array.from({ length: 20 }, (_, index) => `t${index}`);
  const targets = { ...Object.fromEntries(thin.map((name) => [name, targetOf(name, `ENV T=${name}`)])) };
  writeFiles(directory, {
    "docker-bake.json": JSON.stringify({
      target: { ...targets, ran: targetOf("ran", "RUN test -f /large") },
    }),
  });
  const baked = await bough("bake", ...thin, "--push");
  expect(baked.exitCode, baked.stderr).toBe(0);
  expect(baked.bytes).toBeLessThan(20 * thinBytes);
  expect(baked.requests.filter((request) => request.startsWith("GET /v2/base/"))).toHaveLength(2);
  home = temporaryDirectory();
  const all = await bough("bake", ...thin, "ran", "--push", "--drop-pushed");
  expect(all.exitCode, all.stderr).toBe(0);
  expect(all.requests.filter((request) => request === `GET /v2/base/blobs/${layer}`)).toHaveLength(1);
});
