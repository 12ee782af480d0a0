/** Exports keep the layers of a base, with their digests. The engine keeps the files in which they arrived. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { problemsOfLayout } from "../support/image-spec.ts";
import { Registry } from "../support/registry.ts";

setDefaultTimeout(120_000);

const places = temporaryDirectory();
const maker = temporaryDirectory();
let registry: Registry;

const inHome = (home: string, ...words: string[]) =>
  runBough(["--local", "-q", ...words], { workingDirectory: places, environment: { BOUGH_HOME: home } });

async function bough(home: string, ...words: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await inHome(home, ...words);
  if (exitCode !== 0) throw new Error(`bough ${words.join(" ")}: ${stderr}`);
  return stdout.trim();
}

const layersOf = (image: string): string[] => inspect(image).Layers;

/** Digests of the layers' uncompressed contents. */
const contentsOf = (image: string): string[] => inspect("--config", image).rootfs.diff_ids;

function inspect(...words: string[]) {
  const { success, stdout, stderr } = Bun.spawnSync(["skopeo", "inspect", ...words], { cwd: places });
  if (!success) throw new Error(stderr.toString());
  return JSON.parse(stdout.toString());
}

/** Makes an engine that has imported `source` as `base:1` and built `app:1` on it. Returns its home. */
async function buildOn(source: string): Promise<string> {
  const home = temporaryDirectory();
  await bough(home, "images", "import", source, "--tag", "base:1");
  await bough(home, "build", "context", "--tag", "app:1");
  return home;
}

beforeAll(async () => {
  registry = await Registry.start();
  await bough(maker, "images", "import", await makeBusyboxLayout(join(places, "first")), "--tag", "first:1");
  writeFiles(join(places, "base"), {
    Dockerfile: "FROM first:1\nRUN echo 1 > /one\nRUN rm /one; echo 2 > /two\n",
  });
  writeFiles(join(places, "context"), { Dockerfile: "FROM base:1\nRUN cp /two /three\n" });
  await bough(maker, "build", "base", "--tag", "made:1");
  for (const compression of ["gzip", "zstd", "none"]) {
    await bough(maker, "images", "export", "made:1", `oci:${compression}:1`, "--compression", compression);
    const name = `docker://${registry.host}/${compression}:1`;
    await bough(maker, "images", "export", "made:1", name, "--compression", compression);
  }
  await bough(maker, "images", "export", "made:1", "oci-archive:zstd.tar:1", "--compression", "zstd");
});
afterAll(() => registry?.stop());

describe("an image that is built on a base has the base's layers", () => {
  test.each([
    ["gzip", "oci:PLACES/gzip:1", []],
    ["gzip", "docker://REGISTRY/gzip:1", []],
    ["zstd", "docker://REGISTRY/zstd:1", []],
    ["zstd", "oci:PLACES/zstd:1", []],
    ["zstd", "oci-archive:PLACES/zstd.tar:1", []],
    ["none", "oci:PLACES/none:1", ["--compression", "none"]],
  ])("%s, from %s", async (compression, source, options) => {
    const home = await buildOn(source.replace("PLACES", places).replace("REGISTRY", registry.host));
    const target = `oci:out-${crypto.randomUUID()}:1`;
    await bough(home, "images", "export", "app:1", target, ...options);
    const layers = layersOf(target);
    expect(layers.slice(0, -1)).toEqual(layersOf(`oci:${compression}:1`));
    expect(layers).toHaveLength(4);
    expect(problemsOfLayout(join(places, target.split(":")[1] ?? ""))).toEqual([]);
  });

  test("uncompressed in Docker's archive, and compressed in other formats", async () => {
    const home = await buildOn(`oci:${places}/none:1`);
    await bough(home, "images", "export", "app:1", "oci:packed:1");
    await bough(home, "images", "export", "app:1", "docker-archive:plain.tar");
    expect(layersOf("oci:packed:1").slice(0, -1)).toEqual(layersOf("oci:gzip:1"));
    expect(layersOf("docker-archive:plain.tar").slice(0, -1)).toEqual(contentsOf("oci:none:1"));
    const zstd = await buildOn(`oci:${places}/zstd:1`);
    await bough(zstd, "images", "export", "app:1", "docker-archive:from-zstd.tar");
    expect(layersOf("docker-archive:from-zstd.tar").slice(0, -1)).toEqual(contentsOf("oci:none:1"));
  });

  test("with their original times", async () => {
    const home = await buildOn(`oci:${places}/gzip:1`);
    const { exitCode } = await runBough(
      ["--local", "images", "export", "app:1", "oci:clamped:1", "--rewrite-timestamp"],
      { workingDirectory: places, environment: { BOUGH_HOME: home, SOURCE_DATE_EPOCH: "1" } },
    );
    expect(exitCode).toBe(0);
    expect(layersOf("oci:clamped:1").slice(0, -1)).toEqual(layersOf("oci:gzip:1"));
  });
});

describe("the files in which a base arrived", () => {
  test.each(["gzip", "none"])(
    "cause errors of export and check if they are damaged, and are replaced by bough's layer after a repair: %s",
    async (source) => {
      const home = await buildOn(`oci:${places}/${source}:1`);
      // The file of the lowest layer. bough made the others, and would make the same bytes again.
      const [directory = ""] = readdirSync(join(home, "engine/blobs")).sort();
      const blobs = join(home, "engine/blobs", directory);
      const name = readdirSync(blobs).find((each) => each !== "layers.json") ?? "";
      const bytes = readFileSync(join(blobs, name));
      bytes[bytes.length - 12] = (bytes[bytes.length - 12] ?? 0) ^ 1;
      writeFileSync(join(blobs, name), bytes);
      const failed = await inHome(home, "images", "export", "app:1", `oci:damaged-${source}:1`);
      expect(failed.stderr).toContain("a layer of the image is damaged");
      expect(failed.stderr).toContain("engine check --repair");
      expect(failed.exitCode).toBe(1);
      const check = async () => {
        const ended = await runBough(["--local", "-f", "json", "engine", "check"], {
          workingDirectory: places,
          environment: { BOUGH_HOME: home },
        });
        return JSON.parse(ended.stdout);
      };
      expect((await check()).damage).toMatchObject([{ kind: "blob", name: directory, images: [] }]);
      await bough(home, "engine", "check", "--repair");
      expect((await check()).damage).toEqual([]);
      await bough(home, "images", "export", "app:1", `oci:own-${source}:1`);
      const base = layersOf("oci:gzip:1");
      expect(layersOf(`oci:own-${source}:1`).filter((layer) => base.includes(layer))).toHaveLength(2);
      // Another import stores the files again.
      await bough(home, "images", "import", `oci:${places}/${source}:1`);
      await bough(home, "images", "export", "app:1", `oci:again-${source}:1`);
      expect(layersOf(`oci:again-${source}:1`).slice(0, -1)).toEqual(layersOf("oci:gzip:1"));
    },
  );

  test("are removed with the base", async () => {
    const home = await buildOn(`oci:${places}/gzip:1`);
    expect(readdirSync(join(home, "engine/blobs"))).toHaveLength(3);
    await bough(home, "engine", "prune", "--all", "-y");
    expect(readdirSync(join(home, "engine/blobs"))).toEqual([]);
  });
});
