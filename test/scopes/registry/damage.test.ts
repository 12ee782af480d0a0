/** Caches that are damaged, foreign, newer, hostile or incomplete, and registries that fail: the build goes on without them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { digestOf } from "../../../src/image/digest.ts";
import { runBough, temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { writeFiles } from "../../support/files.ts";
import { Registry } from "../../support/registry.ts";
import { type Front, startFront } from "./front.ts";
import { buildIn, newHome } from "./homes.ts";

const manifestType = "application/vnd.oci.image.manifest.v1+json";

let registry: Registry;
let front: Front;
let source: string;
let text: string;
beforeAll(async () => {
  registry = await Registry.start();
  registry.push(await makeBusyboxLayout(temporaryDirectory()), "base:1");
  text = `FROM ${registry.host}/base:1\nRUN echo one > /one\nRUN cat /one > /two\n`;
  source = temporaryDirectory();
  writeFiles(source, { Dockerfile: text });
  front = startFront(registry);
});
afterAll(async () => {
  await front[Symbol.asyncDispose]();
  await registry.stop();
});

const shared = (host: string, name: string) => {
  const ref = `type=registry,ref=${host}/${name}:main`;
  return ["--docker", `--cache-from=${ref}`, `--cache-to=${ref},mode=max`];
};
const edit = (from: string, to: string) => writeFileSync(join(source, "Dockerfile"), text.replace(from, to));

async function put(name: string, manifest: object): Promise<string> {
  const body = JSON.stringify(manifest);
  const url = `http://${registry.host}/v2/${name}/manifests/main`;
  const response = await fetch(url, { method: "PUT", body, headers: { "content-type": manifestType } });
  expect(response.status, await response.text()).toBe(201);
  return digestOf(body);
}

async function putBlob(name: string, bytes: Uint8Array) {
  const begun = await fetch(`http://${registry.host}/v2/${name}/blobs/uploads/`, { method: "POST" });
  const url = new URL(begun.headers.get("location") ?? "");
  const digest = digestOf(bytes);
  url.searchParams.set("digest", digest);
  await fetch(url, { method: "PUT", body: new Uint8Array(bytes) });
  return { digest, size: bytes.byteLength };
}

const indexType = "application/vnd.bough.cache.index.v1+zstd";

test.each([
  ["an image", "application/vnd.oci.image.config.v1+json", "it is an image or another artifact", true],
  ["buildx's cache", "application/vnd.buildkit.cacheconfig.v0", "docker buildx wrote it", true],
  ["that of a newer bough", "application/vnd.bough.cache.index.v2+zstd", "a newer bough wrote it", true],
  ["a damaged index", indexType, "it is damaged", false],
  ["an index of another format", indexType, "a newer bough wrote it (format 9)", true],
  ["no index", indexType, "it is not a bough cache index", false],
  ["an index from a year that no date has", indexType, "it is damaged", false],
])(
  "%s is a miss with a warning",
  async (what, mediaType, message, isKept) => {
    const name = `x${what.replace(/[^a-z]+/g, "-")}`;
    const contents: Record<string, Uint8Array> = {
      "a damaged index": Buffer.from("no zstd"),
      "an index of another format": Bun.zstdCompressSync(Buffer.from("bough-cache 9\n{}\nunsigned\n{}")),
      "an index from a year that no date has": Bun.zstdCompressSync(
        Buffer.from('bough-cache 1\n{"scope":"x","by":"x","at":1e300,"body":"x","steps":"x"}\nunsigned\n{}'),
      ),
      "no index": Bun.zstdCompressSync(Buffer.from("hello\n")),
    };
    const config = { mediaType, ...(await putBlob(name, contents[what] ?? Buffer.from("{}"))) };
    const digest = await put(name, { schemaVersion: 2, mediaType: manifestType, config, layers: [] });
    const built = await buildIn(newHome(), source, shared(registry.host, name));
    expect([built.exitCode, built.runs.length], built.stderr).toEqual([0, 2]);
    expect(built.stderr).toContain(`[WARN] cache: ${registry.host}/${name}:main is not used: ${message}`);
    const found = await fetch(`http://${registry.host}/v2/${name}/manifests/main`, {
      headers: { accept: manifestType },
    });
    expect(digestOf(await found.bytes()) === digest).toBe(isKept);
  },
  180_000,
);

test("layers that the registry has lost, or that have other bytes, are made again", async () => {
  front.intercept = () => undefined;
  const words = shared(front.host, "lost");
  edit("", "");
  await buildIn(newHome(), source, words);
  const responses = [() => new Response("no", { status: 404 }), () => new Response("other bytes")];
  for (const [at, respond] of responses.entries()) {
    edit("> /two", `> /three${at}`);
    front.intercept = (request) =>
      request.method === "GET" && /\/blobs\//.test(request.url) && seen.size > 1 ? respond() : note(request);
    // The index is the first blob that a build reads.
    const seen = new Set<string>();
    const note = (request: Request) => {
      if (request.method === "GET" && /\/blobs\//.test(request.url)) seen.add(request.url).add("index");
      return undefined;
    };
    const built = await buildIn(newHome(), source, words);
    expect([built.exitCode, built.runs.at(-1)], built.stderr).toEqual([0, "RUN echo one > /one"]);
    expect(built.stderr).toContain("is gone: building it again");
  }
}, 180_000);

test("what a registry has lost is sent again", async () => {
  front.intercept = () => undefined;
  const words = shared(front.host, "forgetful");
  const home = newHome();
  edit("", "");
  await buildIn(home, source, words);
  const manifest = (await (
    await fetch(`http://${registry.host}/v2/forgetful/manifests/main`, { headers: { accept: manifestType } })
  ).json()) as { layers: { digest: string; size: number }[] };
  // The registry refuses a manifest with such a blob, until it is sent again.
  // The base's layer, which is the largest.
  const lost = manifest.layers.sort((one, other) => other.size - one.size)[0]?.digest ?? "";
  let isLost = true;
  front.intercept = (request) => {
    if (!isLost) return undefined;
    if (request.method === "HEAD" && request.url.endsWith(lost)) return new Response(null, { status: 404 });
    if (request.method === "PUT" && request.url.includes(encodeURIComponent(lost))) isLost = false;
    return request.method === "PUT" && request.url.includes("/manifests/")
      ? Response.json({ errors: [{ code: "MANIFEST_BLOB_UNKNOWN" }] }, { status: 404 })
      : undefined;
  };
  edit("> /two", "> /five");
  const built = await buildIn(home, source, words);
  expect([built.exitCode, isLost], built.stderr).toEqual([0, false]);
  expect(built.stderr).toContain("cache: 127.0.0.1");
  expect(built.stderr).not.toContain("[WARN] cache");
}, 180_000);

test("a registry that goes away after it has the cache has the cache", async () => {
  edit("> /two", "> /six");
  let isWritten = false;
  front.intercept = (request) => {
    if (isWritten) return new Response("away", { status: 410 });
    isWritten = request.method === "PUT" && request.url.endsWith("/manifests/main");
    return isWritten ? new Response(null, { status: 201 }) : undefined;
  };
  const built = await buildIn(newHome(), source, shared(front.host, "written"));
  expect([built.exitCode, isWritten], built.stderr).toEqual([0, true]);
  expect(built.stderr).toMatch(/cache: \S+ has 2 layers, 2 new/);
  expect(built.stderr).not.toContain("nothing is written");
}, 180_000);

test("a registry that goes away costs the cache only", async () => {
  front.intercept = () => undefined;
  const words = shared(front.host, "away");
  edit("", "");
  await buildIn(newHome(), source, words);
  edit("> /two", "> /four");
  let hasRead = false;
  front.intercept = (request) => {
    if (hasRead) return new Response("away", { status: 410 });
    hasRead = /\/blobs\//.test(request.url);
    return undefined;
  };
  const built = await buildIn(newHome(), source, words);
  expect(built.exitCode, built.stderr).toBe(0);
  expect(built.stderr).toContain("[WARN] cache: nothing is written");
}, 180_000);

test("a signature is required with --cache-verify, and covers the layers", async () => {
  const keys = temporaryDirectory();
  for (const words of [
    ["genpkey", "-algorithm", "ed25519", "-out", "key"],
    ["pkey", "-in", "key", "-pubout", "-out", "pub"],
  ])
    Bun.spawnSync(["openssl", ...words], { cwd: keys });
  edit("", "");
  const [signed, unsigned] = [shared(registry.host, "signed"), shared(registry.host, "unsigned")];
  await buildIn(newHome(), source, [...signed, "--cache-sign", join(keys, "key")]);
  await buildIn(newHome(), source, unsigned);
  const verify = ["--cache-verify", join(keys, "pub")];
  const found = await buildIn(newHome(), source, [...signed.slice(0, 2), ...verify]);
  expect([found.exitCode, found.runs], found.stderr).toEqual([0, []]);
  const refused = await buildIn(newHome(), source, [...unsigned.slice(0, 2), ...verify]);
  expect([refused.exitCode, refused.runs.length], refused.stderr).toEqual([0, 2]);
  expect(refused.stderr).toContain("it is not signed");
  const unkeyed = await buildIn(newHome(), source, ["--build-arg", "A=1", ...signed, "--no-cache"]);
  expect(unkeyed.stderr).toContain("it is signed, and this build has no --cache-sign");
}, 180_000);

test("a signature policy counts for FROM with a cache as without", async () => {
  const HOME = temporaryDirectory();
  const transports = { docker: { [`${registry.host}/base`]: [{ type: "reject" }] } };
  const policy = { default: [{ type: "insecureAcceptAnything" }], transports };
  writeFiles(HOME, { ".config/containers/policy.json": JSON.stringify(policy) });
  edit("", "");
  const built = await buildIn(newHome(), source, shared(registry.host, "policy"), { environment: { HOME } });
  expect([built.exitCode, built.runs]).toEqual([1, []]);
  expect(built.stderr).toContain("rejected by policy");
}, 180_000);

test("a signature policy that refuses a cache's repository is said once", async () => {
  edit("", "");
  const words = shared(registry.host, "unsigned-cache");
  await buildIn(newHome(), source, words);
  const HOME = temporaryDirectory();
  const transports = { docker: { [`${registry.host}/unsigned-cache`]: [{ type: "reject" }] } };
  const policy = { default: [{ type: "insecureAcceptAnything" }], transports };
  writeFiles(HOME, { ".config/containers/policy.json": JSON.stringify(policy) });
  const built = await buildIn(newHome(), source, words, { environment: { HOME } });
  expect([built.exitCode, built.runs.length], built.stderr).toEqual([0, 2]);
  const warnings = built.stderr.match(
    /\[WARN\] cache: layers of \S+\/unsigned-cache:main are not used: .*the signature policy/g,
  );
  expect(warnings, built.stderr).toHaveLength(1);
}, 180_000);

test("bough cache takes a reference", async () => {
  edit("", "");
  const name = `${registry.host}/shown`;
  await buildIn(newHome(), source, shared(registry.host, "shown"));
  const cache = (...words: string[]) =>
    runBough(["-f", "json", "cache", ...words], {
      workingDirectory: "/",
      environment: { BOUGH_HOME: temporaryDirectory() },
    });
  const [listed, shown] = [await cache("list", `${name}:main`), await cache("show", `${name}:main`)];
  expect(JSON.parse(listed.stdout), listed.stderr).toMatchObject([{ scope: `${name}:main`, layers: 2 }]);
  expect(
    JSON.parse(shown.stdout)
      .map(({ title }: { title: string }) => title)
      .sort(),
  ).toEqual(["RUN cat /one > /two", "RUN echo one > /one"]);
  const refused = await cache("remove", `${registry.host}/base:1`);
  expect([refused.exitCode, refused.stderr]).toEqual([1, expect.stringContaining("is not a cache of bough")]);
  const missing = await cache("show", `${name}:none`);
  expect([missing.exitCode, missing.stderr]).toEqual([1, expect.stringContaining("there is no cache")]);
}, 180_000);
