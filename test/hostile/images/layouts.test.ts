/** Forged and damaged images on disk: nothing is stored before the whole image has been verified. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { migrations } from "../../../src/engine/engine-directory.ts";
import { temporaryDirectory } from "../../support/bough.ts";
import { TestEngine } from "../../support/engine.ts";
import {
  addBlob,
  addManifest,
  digestOf,
  encode,
  ociFiles,
  type RawDescriptor,
  type RawFiles,
  type RawImage,
  skopeoFiles,
  writeRawFiles,
} from "../../support/image-bytes.ts";
import { downgrade } from "../../support/old-database.ts";
import { type RawEntry, tarOf } from "../../support/tar-bytes.ts";
import { type ImportingEngine, openImportingEngine } from "../importing.ts";

let importing: ImportingEngine;
let count = 0;

beforeAll(async () => {
  importing = await openImportingEngine();
});
afterAll(() => importing.engine.close());

const numbered = (): Uint8Array<ArrayBuffer> => tarOf([{ name: "number", content: `${count++}` }]);
const image = (more: Partial<RawImage> = {}): RawImage => ({ layers: [numbered()], ...more });
const layoutOf = (files: RawFiles): string => writeRawFiles(temporaryDirectory(), files);

describe("refuses a manifest", () => {
  const layered = (change: (layers: RawDescriptor[]) => RawDescriptor[]): RawImage => ({
    layers: [numbered(), numbered()],
    manifest: (manifest) => ({ ...manifest, layers: change(manifest.layers) }),
  });

  test.each<[string, () => RawImage, string]>([
    [
      "without its last layer",
      () => layered((layers) => layers.slice(0, 1)),
      "1 layer, its configuration has 2",
    ],
    [
      "without its first layer",
      () => layered((layers) => layers.slice(1)),
      "1 layer, its configuration has 2",
    ],
    ["without layers", () => layered(() => []), "0 layers, its configuration has 2"],
    [
      "with a layer twice",
      () => layered((layers) => [...layers, ...layers.slice(0, 1)]),
      "3 layers, its configuration has 2",
    ],
    ["with its layers in reverse order", () => layered((layers) => layers.toReversed()), "damaged or forged"],
    [
      "with another layer than its configuration",
      () => image({ diffIds: [digestOf(Buffer.from("the genuine one"))] }),
      "damaged or forged",
    ],
    [
      "with a wrong size of a layer",
      () => layered(([first, ...rest]) => [{ ...first, size: 1 } as RawDescriptor, ...rest]),
      "expects 1",
    ],
    [
      "with a size that is not a number",
      () => layered(([first, ...rest]) => [{ ...first, size: "1" } as unknown as RawDescriptor, ...rest]),
      "has no valid size",
    ],
    [
      "with a negative size",
      () => layered(([first, ...rest]) => [{ ...first, size: -1 } as RawDescriptor, ...rest]),
      "has no valid size",
    ],
    [
      "with a digest that is a path",
      () =>
        layered(([first, ...rest]) => [
          { ...first, digest: "sha256:../../../../etc/passwd" } as RawDescriptor,
          ...rest,
        ]),
      "where a digest is expected",
    ],
    [
      "with a digest of another algorithm",
      () =>
        layered(([first, ...rest]) => [
          { ...first, digest: `md5:${"0".repeat(32)}` } as RawDescriptor,
          ...rest,
        ]),
      "where a digest is expected",
    ],
    [
      "with a layer that is missing",
      () =>
        layered(([first, ...rest]) => [
          { ...first, digest: `sha256:${"0".repeat(64)}` } as RawDescriptor,
          ...rest,
        ]),
      "there is no such file",
    ],
    [
      "with invalid content digests",
      () => image({ diffIds: ["sha256:../../x"] }),
      "where a digest is expected",
    ],
    [
      "with content digests that are not a list",
      () => image({ config: { rootfs: { diff_ids: { length: 1 } } } }),
      "is malformed",
    ],
    [
      "with both RootFS and rootfs",
      () => image({ config: { RootFS: { diff_ids: [] }, rootfs: { diff_ids: [] } } }),
      "1 layer, its configuration has 0",
    ],
    [
      "with layers that are not a list",
      () => image({ manifest: (manifest) => ({ ...manifest, layers: 1 }) }),
      "is malformed",
    ],
    ["without a configuration", () => image({ manifest: ({ layers }) => ({ layers }) }), "is malformed"],
    ["that is a list", () => image({ manifest: (manifest) => [manifest] }), "is malformed"],
    [
      "is a Docker schema 1 manifest",
      () => image({ manifest: () => ({ schemaVersion: 1, fsLayers: [] }) }),
      "is a Docker schema 1 manifest",
    ],
  ])("%s", async (_, raw, message) => {
    await importing.expectRefused(`oci:${layoutOf(ociFiles(raw()))}:latest`, message);
    await importing.expectRefused(`dir:${layoutOf(skopeoFiles(raw()))}`, message);
  });

  test("and imports the genuine image afterwards", async () => {
    const layers = [numbered(), tarOf([{ name: "etc/login", content: "asks for a password" }])];
    const forged = {
      layers,
      manifest: (manifest: { layers: unknown[] }) => ({ ...manifest, layers: manifest.layers.slice(0, 1) }),
    };
    await importing.expectRefused(`oci:${layoutOf(ociFiles(forged))}:latest`, "damaged or forged");
    const genuine = await importing.importFrom(`oci:${layoutOf(ociFiles({ layers }))}:latest`);
    expect(await importing.textIn(genuine, "/etc/login")).toBe("asks for a password");
  });
});

test("an image that an earlier version stored unverified is not taken for the genuine one", async () => {
  const directory = temporaryDirectory();
  const importInto = async (engine: TestEngine, url: string): Promise<string> => {
    const { uuid } = await engine.json<{ uuid: string }>("POST", "/v1/images/import", { registry: { url } });
    return (await engine.finish({ uuid })).result?.image ?? "";
  };
  const [genuine, forged] = [`oci:${layoutOf(ociFiles(image()))}`, `oci:${layoutOf(ociFiles(image()))}`];
  const before = await TestEngine.open({ directory });
  await importInto(before, forged);
  const asGenuine = await importInto(before, genuine);
  await before.engine.close();
  const database = new Database(join(directory, "engine.db"));
  // As after the import of a truncated manifest: the record has the genuine image's digests, and another image's layer.
  database.run(`UPDATE images SET layer = 1 WHERE uuid = '${asGenuine}'`);
  database.close();
  downgrade(join(directory, "engine.db"), migrations[0] ?? "");
  const after = await TestEngine.open({ directory });
  const found = await after.fetch(
    "GET",
    `/v1/inspect/${await importInto(after, genuine)}/download?path=/number`,
  );
  expect(await found.text()).toBe(`${count - 2}`);
  await after.close();
});

describe("refuses an index with:", () => {
  const indexed = (change: (manifest: Record<string, unknown>) => unknown): RawFiles =>
    ociFiles(image({ index: (index) => ({ manifests: index.manifests.map(change) }) }));
  const nested = (depth: number): RawFiles => {
    const files: RawFiles = new Map();
    let described = addManifest(files, image());
    for (let level = 0; level < depth; level++) {
      const platform = { os: "linux", architecture: process.arch === "arm64" ? "arm64" : "amd64" };
      described = addBlob(files, encode({ manifests: [{ ...described, platform }] }), "index");
    }
    return files.set("index.json", encode({ manifests: [described] }));
  };

  test.each<[string, () => RawFiles, string]>([
    [
      "a digest that is a path",
      () => indexed((manifest) => ({ ...manifest, digest: "../../x" })),
      "where a digest is expected",
    ],
    [
      "a digest with a path in it",
      () => indexed((manifest) => ({ ...manifest, digest: `sha256:${"../".repeat(20)}${"a".repeat(4)}` })),
      "where a digest is expected",
    ],
    ["no digest", () => indexed(({ digest: _, ...manifest }) => manifest), "where a digest is expected"],
    [
      "a digest of 512 bits",
      () => indexed((manifest) => ({ ...manifest, digest: `sha512:${"0".repeat(128)}` })),
      "where a digest is expected",
    ],
    ["a wrong size", () => indexed((manifest) => ({ ...manifest, size: 7 })), "expects 7"],
    ["no manifests", () => ociFiles(image({ index: () => ({}) })), "has no image"],
    [
      "null in place of an object",
      () => ociFiles(image({ index: () => null })).set("index.json", encode(null)),
      "is malformed",
    ],
    [
      "two images and no name",
      () => {
        const digest = `sha256:${"0".repeat(64)}`;
        const index = ({ manifests }: { manifests: object[] }) => ({
          manifests: [...manifests, ...manifests.map((manifest) => ({ ...manifest, digest }))],
        });
        return ociFiles(image({ index }));
      },
      "more than one image",
    ],
    ["too many nested indexes", () => nested(6), "are nested too deeply"],
  ])("%s", async (_, files, message) => {
    await importing.expectRefused(`oci:${layoutOf(files())}`, message);
  });
});

describe("refuses a layout with:", () => {
  const layerPath = (directory: string): string => {
    const names = readdirSync(join(directory, "blobs/sha256"));
    const content = names.find((name) => Bun.file(join(directory, "blobs/sha256", name)).size >= 1024);
    return join(directory, "blobs/sha256", content ?? "");
  };
  const makePipe = (path: string): void => {
    rmSync(path);
    expect(Bun.spawnSync(["mkfifo", path]).success).toBe(true);
  };

  test.each<[string, (directory: string) => void, string]>([
    [
      "a layer that is a link to a file of the machine",
      (directory) => {
        const path = layerPath(directory);
        rmSync(path);
        symlinkSync(join(importing.canary.path, "secret"), path);
      },
      "a symbolic link or is reached through one",
    ],
    [
      "a layer that is a link to the same bytes",
      (directory) => {
        const path = layerPath(directory);
        renameSync(path, `${path}.moved`);
        symlinkSync(`${path}.moved`, path);
      },
      "a symbolic link or is reached through one",
    ],
    [
      "a directory of blobs that is a link",
      (directory) => {
        renameSync(join(directory, "blobs"), join(directory, "elsewhere"));
        symlinkSync("elsewhere", join(directory, "blobs"));
      },
      "a symbolic link or is reached through one",
    ],
    [
      "an index that is a link",
      (directory) => {
        rmSync(join(directory, "index.json"));
        symlinkSync(join(importing.canary.path, "secret"), join(directory, "index.json"));
      },
      "a symbolic link or is reached through one",
    ],
    [
      "a link to itself",
      (directory) => {
        rmSync(join(directory, "index.json"));
        symlinkSync("index.json", join(directory, "index.json"));
      },
      "a symbolic link or is reached through one",
    ],
    [
      "an index that is a pipe",
      (directory) => makePipe(join(directory, "index.json")),
      "is not a regular file",
    ],
    ["a layer that is a pipe", (directory) => makePipe(layerPath(directory)), "is not a regular file"],
    [
      "an index that is a device",
      (directory) => {
        rmSync(join(directory, "index.json"));
        symlinkSync("/dev/zero", join(directory, "index.json"));
      },
      "a symbolic link or is reached through one",
    ],
    [
      "an index that is a directory",
      (directory) => {
        rmSync(join(directory, "index.json"));
        mkdirSync(join(directory, "index.json"));
      },
      "is not a regular file",
    ],
    [
      "a sparse index of 10 TB",
      (directory) => truncateSync(join(directory, "index.json"), 10e12),
      "too large for a manifest",
    ],
    [
      "an index that is not text",
      (directory) => writeFileSync(join(directory, "index.json"), Buffer.from([0xff, 0xfe, 0])),
      "is not JSON",
    ],
  ])("%s", async (_, change, message) => {
    const directory = layoutOf(ociFiles(image()));
    change(directory);
    await importing.expectRefused(`oci:${directory}:latest`, message);
  });

  test("but accepts a path to it that is a link", async () => {
    const link = join(temporaryDirectory(), "link");
    symlinkSync(layoutOf(ociFiles(image())), link);
    expect(await importing.importFrom(`oci:${link}:latest`)).toMatchObject({
      status: "SUCCESS",
      error: null,
    });
  });
});

describe("refuses a layer that is:", () => {
  const zeros = new Uint8Array(64 * 1024 ** 2);
  const sparse = (): Uint8Array<ArrayBuffer> =>
    tarOf([
      {
        name: "p",
        flag: "x",
        content: "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n38 GNU.sparse.realsize=10000000000000\n",
      },
      { name: "s", content: "0\n".padEnd(512, "\0") },
    ]);

  test.each<[string, () => Uint8Array, string]>([
    ["a gzip bomb", () => Bun.gzipSync(tarOf([{ name: "x", content: zeros }])), "unpacks to more than 33 MB"],
    [
      "a gzip bomb after the archive's end",
      () => Bun.gzipSync(Buffer.concat([numbered(), zeros])),
      "unpacks to more than 33 MB",
    ],
    [
      "a zstd bomb",
      () => Bun.zstdCompressSync(tarOf([{ name: "x", content: zeros }])),
      "unpacks to more than 33 MB",
    ],
    ["a sparse file of 10 TB", sparse, "unpacks to more than 33 MB"],
    [
      "too many files",
      () => Bun.gzipSync(tarOf(Array.from({ length: 10_001 }, (_, index) => ({ name: `${index}` })))),
      "more than 10000 files",
    ],
    [
      "an archive with a header of 2 MB",
      () => tarOf([{ name: "p", flag: "x", content: new Uint8Array(2 * 1024 ** 2) }]),
      "is not a layer",
    ],
    ["not an archive", () => Buffer.from("no archive at all".repeat(100)), "is not a layer"],
    [
      "compressed in a format that bough does not unpack",
      () => Buffer.from("BZh9 and more"),
      "is compressed with bzip2",
    ],
    ["truncated gzip", () => Bun.gzipSync(numbered()).subarray(0, 60), "is damaged"],
  ])("%s", async (_, layer, message) => {
    const bytes = layer();
    const diffIds = [digestOf(bytes)];
    await importing.expectRefused(`oci:${layoutOf(ociFiles({ layers: [bytes], diffIds }))}:latest`, message);
  });

  test("a bomb of 1 GiB, without holding it in memory", async () => {
    const before = process.memoryUsage().rss;
    const bomb = Bun.gzipSync(new Uint8Array(1024 ** 3));
    const files = ociFiles({ layers: [bomb], diffIds: [digestOf(bomb)] });
    await importing.expectRefused(`oci:${layoutOf(files)}:latest`, "unpacks to more than");
    expect(process.memoryUsage().rss - before).toBeLessThan(1.5 * 1024 ** 3);
  });
});

describe("a layer changes nothing outside of its image:", () => {
  const rows: [string, (canary: string) => RawEntry[]][] = [
    [
      "a file through a link",
      (path) => [
        { name: "x", flag: "2", target: path },
        { name: "x/secret", content: "gone" },
      ],
    ],
    [
      "a file through a link with ..",
      (path) => [
        { name: "x", flag: "2", target: `../../../../../../../../..${path}` },
        { name: "x/secret", content: "gone" },
      ],
    ],
    [
      "a hard link to a file outside",
      (path) => [{ name: "h", flag: "1", target: `../../../../../../../..${path}/secret` }],
    ],
    ["a name with ..", (path) => [{ name: `../../../../../../../../..${path}/secret`, content: "gone" }]],
    [
      "a whiteout through a link",
      (path) => [{ name: "x", flag: "2", target: path }, { name: "x/.wh.secret" }],
    ],
    [
      "an opaque directory through a link",
      (path) => [{ name: "x", flag: "2", target: path }, { name: "x/.wh..wh..opq" }],
    ],
    ["a whiteout of the directory above", () => [{ name: ".wh..." }]],
    [
      "a root that is a link",
      (path) => [
        { name: ".", flag: "2", target: path },
        { name: "secret", content: "gone" },
      ],
    ],
    [
      "a directory over a link, with another mode",
      (path) => [
        { name: "x", flag: "2", target: path },
        { name: "x/", flag: "5", mode: 0o777 },
      ],
    ],
  ];

  test.each(rows)("%s", async (_, entries) => {
    const before = importing.canary.state();
    const layers = [tarOf([...entries(importing.canary.path), { name: "number", content: `${count++}` }])];
    const operation = await importing.importFrom(`oci:${layoutOf(ociFiles({ layers }))}:latest`);
    expect(importing.canary.state()).toBe(before);
    // Some of these layers are imported, others refused.
    if (operation.status === "SUCCESS")
      expect(await importing.textIn(operation, "/h")).not.toContain("nobody");
  });
});

describe("imports an image", () => {
  const compressed: [string, (layer: Uint8Array<ArrayBuffer>) => Uint8Array][] = [
    ["plain tar", (layer) => layer],
    ["gzip", (layer) => Bun.gzipSync(layer)],
    [
      "gzip in two members",
      (layer) => Buffer.concat([Bun.gzipSync(layer.slice(0, 700)), Bun.gzipSync(layer.slice(700))]),
    ],
    ["zstd", (layer) => Bun.zstdCompressSync(layer)],
    [
      "zstd in two frames",
      (layer) =>
        Buffer.concat([Bun.zstdCompressSync(layer.slice(0, 700)), Bun.zstdCompressSync(layer.slice(700))]),
    ],
  ];

  test.each(compressed)("with layers in %s", async (_, pack) => {
    const layers = [numbered(), tarOf([{ name: "number", content: "the upper one's" }])];
    const raw = { layers: layers.map((layer) => pack(layer)), diffIds: layers.map(digestOf) };
    for (const url of [
      `oci:${layoutOf(ociFiles(raw))}`,
      `dir:${layoutOf(skopeoFiles({ ...raw, config: { author: "dir" } }))}`,
    ]) {
      const operation = await importing.importFrom(url);
      expect(await importing.textIn(operation, "/number")).toBe("the upper one's");
    }
  });

  test("without layers, and with the same layer twice", async () => {
    const layer = numbered();
    for (const layers of [[], [layer, layer]]) {
      const operation = await importing.importFrom(`oci:${layoutOf(ociFiles({ layers }))}:latest`);
      expect(operation).toMatchObject({ status: "SUCCESS", error: null });
    }
  });
});
