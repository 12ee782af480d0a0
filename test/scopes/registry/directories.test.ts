/** Caches in directories: what is damaged, what is tidied, and what a failed build leaves. */
import { beforeAll, describe, expect, test } from "bun:test";
import { cpSync, existsSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { FoundIndex } from "../../../src/builder/scopes/cache-place.ts";
import { encodeScopeIndex } from "../../../src/builder/scopes/index-file.ts";
import { createIndexReader } from "../../../src/builder/scopes/read-index.ts";
import { createArtifactPlace } from "../../../src/builder/scopes/registry/artifact-place.ts";
import { cleanDirectory } from "../../../src/builder/scopes/registry/clean-directory.ts";
import { emptyIndex } from "../../../src/builder/scopes/scope-index.ts";
import { systemClock } from "../../../src/clock.ts";
import { digestOf } from "../../../src/image/digest.ts";
import { createDirectoryStore } from "../../../src/registry/directory-store.ts";
import { temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { writeFiles } from "../../support/files.ts";
import { type Built, buildIn, newHome } from "./homes.ts";

interface Blob {
  mediaType: string;
  digest: string;
  size: number;
  annotations?: Record<string, string>;
}

interface Manifest {
  config: Blob;
  layers: Blob[];
}

let base: string;
beforeAll(async () => {
  base = temporaryDirectory();
  await makeBusyboxLayout(base);
});

const fileOf = (directory: string, digest: string) => join(directory, "blobs/sha256", digest.slice(7));

const manifestType = "application/vnd.oci.image.manifest.v1+json";

function topOf(directory: string): string {
  return JSON.parse(readFileSync(join(directory, "index.json"), "utf8")).manifests[0].digest;
}

function manifestIn(directory: string): Manifest {
  return JSON.parse(readFileSync(fileOf(directory, topOf(directory)), "utf8"));
}

/** Builds with a new home. */
function build(directory: string, steps: string, environment: Record<string, string> = {}): Promise<Built> {
  const source = temporaryDirectory();
  cpSync(base, join(source, "base"), { recursive: true });
  writeFiles(source, { Dockerfile: `FROM oci:./base\n${steps}` });
  const cache = [`--cache-from=type=local,src=${directory}`, `--cache-to=type=local,dest=${directory}`];
  return buildIn(newHome(), source, ["--allow-local-from", ...cache], { environment });
}

const steps = "RUN echo one > /one\n";

const damaged = (directory: string, blob: Blob | undefined) =>
  writeFileSync(fileOf(directory, blob?.digest ?? ""), Buffer.alloc(blob?.size ?? 0));

/** Replaces a cache by the same one in the form that the first versions wrote. */
function writeFirstForm(directory: string, { layers: [index, inputs, ...blobs] }: Manifest): void {
  const typed = (blob: Blob | undefined, what: string) => ({
    mediaType: `application/vnd.bough.cache.${what}.v1+zstd`,
    ...{ digest: blob?.digest, size: blob?.size },
  });
  const text = JSON.stringify({
    ...{ schemaVersion: 2, mediaType: manifestType, artifactType: "application/vnd.bough.cache.v1" },
    ...{ config: typed(index, "index"), layers: [typed(inputs, "steps"), ...blobs] },
  });
  writeFileSync(fileOf(directory, digestOf(text)), text);
  const annotations = { "org.opencontainers.image.ref.name": "latest" };
  const entry = { mediaType: manifestType, digest: digestOf(text), size: text.length, annotations };
  writeFileSync(join(directory, "index.json"), JSON.stringify({ schemaVersion: 2, manifests: [entry] }));
}

test("a cache that was damaged when it was read is not replaced once another writer has mended it", async () => {
  const directory = temporaryDirectory();
  const name = "directory:latest";
  const place = createArtifactPlace(
    { label: directory, address: `dir:${directory}`, tag: "latest", name },
    { store: createDirectoryStore(directory), clock: systemClock, signal: new AbortController().signal },
  );
  const read = () => createIndexReader(place, { warn: () => undefined }).read();
  // As in a registry, which can't be locked.
  const rest = { blobs: [], kept: new Set<string>(), isLocked: false, bases: new Set<string>() };
  const put = (by: string, found: FoundIndex) =>
    place.put(encodeScopeIndex(emptyIndex(), { scope: name, by, at: 1, merged: [] }), { found, ...rest });
  expect(await put("first", await read())).toBeDefined();
  writeFileSync(fileOf(directory, topOf(directory)), "{}");
  const found = await read();
  expect(await put("second", found)).toBeDefined();
  expect(await put("third", found)).toBeUndefined();
  expect((await read()).written?.by).toBe("second");
});

test.each<[string, (directory: string, manifest: Manifest) => void, number]>([
  [
    "without its index",
    (directory, { layers: [index] }) => rmSync(fileOf(directory, index?.digest ?? "")),
    1,
  ],
  ["whose index is damaged", (directory, { layers: [index] }) => damaged(directory, index), 1],
  ["whose inputs of steps are damaged", (directory, { layers: [, inputs] }) => damaged(directory, inputs), 0],
  ["whose manifest is damaged", (directory) => writeFileSync(fileOf(directory, topOf(directory)), "{}"), 1],
  ["whose manifest is lost", (directory) => rmSync(fileOf(directory, topOf(directory))), 1],
  ["in the first form", writeFirstForm, 0],
])(
  "a cache %s is written again",
  async (_, damage, runs) => {
    const directory = temporaryDirectory();
    await build(directory, steps);
    damage(directory, manifestIn(directory));
    const built = await build(directory, `${steps}RUN echo two > /two\n`);
    expect([built.exitCode, built.runs.length], built.stderr).toEqual([0, 1 + runs]);
    expect(built.stderr).not.toContain("nothing is written");
    const again = await build(directory, `${steps}RUN echo two > /two\n`);
    expect([again.exitCode, again.runs], again.stderr).toEqual([0, []]);
    const { config, layers } = manifestIn(directory);
    expect(config.mediaType).toBe("application/vnd.oci.image.config.v1+json");
    for (const { digest } of [config, ...layers])
      expect(digestOf(readFileSync(fileOf(directory, digest)))).toBe(digest);
  },
  180_000,
);

test("a failed build with mode=min sends no layers", async () => {
  const directory = temporaryDirectory();
  const built = await build(directory, `${steps}RUN false\n`);
  expect(built.exitCode).toBe(1);
  const layers = manifestIn(directory).layers.filter(({ annotations }) => annotations === undefined);
  expect(layers).toEqual([]);
}, 180_000);

test("a build without room for temporary files succeeds, without its cache", async () => {
  const built = await build(temporaryDirectory(), steps, { TMPDIR: "/dev/null" });
  expect(built.exitCode, built.stderr).toBe(0);
  expect(built.stderr).toContain("[WARN] cache: nothing is written");
}, 180_000);

describe("an old blob that is not named", () => {
  const unnamed = digestOf("unnamed");
  const cache = { mediaType: "application/vnd.bough.cache.index.v1+zstd", digest: digestOf("index") };
  const image = { mediaType: "application/vnd.oci.image.config.v1+json", digest: digestOf("config") };
  test.each<[string, readonly object[] | string, boolean]>([
    ["is removed from a directory of caches", [{ config: cache, layers: [] }], false],
    [
      "stays beside an image",
      [
        { config: cache, layers: [] },
        { config: image, layers: [] },
      ],
      true,
    ],
    ["stays beside an artifact that names others", [{ blobs: [{ digest: unnamed }] }], true],
    ["stays if the list is damaged", "{", true],
    ["stays if the list is large", JSON.stringify({ manifests: [], more: " ".repeat(9_000_000) }), true],
  ])("%s", async (_, content, stays) => {
    const directory = temporaryDirectory();
    const texts = typeof content === "string" ? [] : content.map((manifest) => JSON.stringify(manifest));
    const manifests = texts.map((text) => ({ digest: digestOf(text) }));
    writeFiles(directory, {
      "index.json": typeof content === "string" ? content : JSON.stringify({ manifests }),
      ...Object.fromEntries(
        [...texts, "unnamed", "index", "config"].map((text) => [
          `blobs/sha256/${digestOf(text).slice(7)}`,
          text,
        ]),
      ),
    });
    utimesSync(fileOf(directory, unnamed), 1, 1);
    utimesSync(fileOf(directory, cache.digest), 1, 1);
    await cleanDirectory(directory, Date.now());
    expect(existsSync(fileOf(directory, unnamed))).toBe(stays);
    expect(existsSync(fileOf(directory, cache.digest))).toBe(true);
  });
});
