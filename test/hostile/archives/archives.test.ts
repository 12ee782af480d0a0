/** Archives of images that want something else than to be imported. Nothing of them is unpacked by another program. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../support/bough.ts";
import {
  archiveOf,
  dockerFiles,
  encode,
  ociFiles,
  type RawFiles,
  type RawImage,
} from "../../support/image-bytes.ts";
import { type RawEntry, tarOf } from "../../support/tar-bytes.ts";
import { type ImportingEngine, openImportingEngine } from "../importing.ts";

let room: ImportingEngine;
let count = 0;

beforeAll(async () => {
  room = await openImportingEngine();
});
afterAll(() => room.engine.close());

/** An image of its own each time, so that none is there already. */
function image(more: Partial<RawImage> = {}): RawImage {
  return { layers: [tarOf([{ name: "number", content: `${count++}` }])], ...more };
}

function write(kind: string, bytes: Uint8Array): string {
  const path = join(temporaryDirectory(), "base.tar");
  writeFileSync(path, bytes);
  return `${kind}:${path}`;
}

const changed = (files: RawFiles, name: string, content: Uint8Array): RawFiles =>
  new Map([...files, [name, content]]);
const without = (files: RawFiles, name: string): RawFiles =>
  new Map([...files].filter(([other]) => other !== name));

describe("what is in it beside the image is never unpacked:", () => {
  test.each<[string, (canary: string) => RawEntry[]]>([
    [
      "a file through a link",
      (canary) => [
        { name: "x", flag: "2", target: canary },
        { name: "x/deep/er/file", content: "the attacker's key", mode: 0o4777 },
      ],
    ],
    [
      "a file through two links",
      (canary) => [
        { name: "x", flag: "2", target: "y" },
        { name: "y", flag: "2", target: canary },
        { name: "x/secret", content: "gone" },
      ],
    ],
    ["a name with ..", () => [{ name: "../../../../../../tmp/bough-escaped", content: "x" }]],
    ["an absolute name", (canary) => [{ name: `${canary}/secret`, content: "gone" }]],
    ["a hard link to a file outside", (canary) => [{ name: "x", flag: "1", target: `${canary}/secret` }]],
    ["a device", () => [{ name: "null", flag: "3" }]],
    ["a pipe", () => [{ name: "pipe", flag: "6" }]],
    [
      "a directory where a link stands",
      (canary) => [
        { name: "blobs2", flag: "2", target: canary },
        { name: "blobs2/", flag: "5", mode: 0 },
      ],
    ],
  ])("%s", async (_, others) => {
    const before = room.canary.state();
    for (const kind of ["oci-archive", "docker-archive"]) {
      const files = kind === "oci-archive" ? ociFiles(image()) : dockerFiles(image());
      const operation = await room.importFrom(write(kind, archiveOf(files, others(room.canary.path))));
      expect(operation).toMatchObject({ status: "SUCCESS", error: null });
    }
    expect(room.canary.state()).toBe(before);
    expect(readdirSync("/tmp")).not.toContain("bough-escaped");
  });
});

describe("a part of the image that is not a file of the archive:", () => {
  test.each<[string, (canary: string) => RawEntry, string]>([
    [
      "a link out of it",
      (canary) => ({ name: "index.json", flag: "2", target: `${canary}/secret` }),
      "whose target is not in the archive",
    ],
    [
      "a link with ..",
      () => ({ name: "index.json", flag: "2", target: "../../../../etc/passwd" }),
      "whose target is not in the archive",
    ],
    [
      "a link to itself",
      () => ({ name: "index.json", flag: "2", target: "index.json" }),
      "whose target is not in the archive",
    ],
    [
      "a hard link out of it",
      (canary) => ({ name: "index.json", flag: "1", target: `${canary}/secret` }),
      "whose target is not in the archive",
    ],
    ["a device", () => ({ name: "index.json", flag: "3" }), "is not a regular file"],
    ["a pipe", () => ({ name: "index.json", flag: "6" }), "is not a regular file"],
    ["a directory", () => ({ name: "index.json/", flag: "5" }), "is not a regular file"],
  ])("%s", async (_, entry, message) => {
    const files = without(ociFiles(image()), "index.json");
    await room.expectRefused(write("oci-archive", archiveOf(files, [entry(room.canary.path)])), message);
  });

  test("a file with holes", async () => {
    const [records, map] = [
      "22 GNU.sparse.major=1\n28 GNU.sparse.realsize=1000\n",
      "1\n0\n2\n".padEnd(512, "\0"),
    ];
    const sparse = [
      { name: "p", flag: "x", content: records },
      { name: "index.json", content: `${map}{}` },
    ];
    const files = without(ociFiles(image()), "index.json");
    await room.expectRefused(
      write("oci-archive", archiveOf(files, sparse)),
      "is a sparse file, which is not supported here",
    );
  });

  test("a file that is there twice", async () => {
    const files = ociFiles(image());
    const twice = archiveOf(files, [{ name: "./index.json", content: '{"manifests":[]}' }]);
    await room.expectRefused(write("oci-archive", twice), "occurs more than once");
  });
});

test.each<[string, (directory: string) => string]>([
  ["a device", () => "/dev/zero"],
  ["a directory", (directory) => directory],
  [
    "a pipe that nobody writes to",
    (directory) => {
      expect(Bun.spawnSync(["mkfifo", join(directory, "pipe")]).success).toBe(true);
      return join(directory, "pipe");
    },
  ],
])("%s is not an archive", async (_, makePath) => {
  await room.expectRefused(`oci-archive:${makePath(temporaryDirectory())}`, "is not a regular file");
});

describe("an archive that costs:", () => {
  const zeros = new Uint8Array(64 * 1024 ** 2);

  test.each<[string, string, () => Uint8Array, string]>([
    [
      "a bomb of gzip around it",
      "oci-archive",
      () => Bun.gzipSync(tarOf([{ name: "x", content: zeros }])),
      "unpacks to more than 33 MB",
    ],
    [
      "a bomb of zstd around it",
      "docker-archive",
      () => Bun.zstdCompressSync(tarOf([{ name: "x", content: zeros }])),
      "unpacks to more than 33 MB",
    ],
    [
      "a layer that is a bomb of gzip",
      "oci-archive",
      () => archiveOf(ociFiles({ layers: [Bun.gzipSync(tarOf([{ name: "x", content: zeros }]))] })),
      "unpacks to more than 33 MB",
    ],
    [
      "too many files beside the image",
      "oci-archive",
      () => Bun.gzipSync(tarOf(Array.from({ length: 50_001 }, (_, index) => ({ name: `${index}` })))),
      "has more than 50000 files",
    ],
    [
      "a manifest of 5 MB",
      "oci-archive",
      () => archiveOf(new Map([["index.json", new Uint8Array(5_000_000)]])),
      "too large for a manifest",
    ],
    [
      "a manifest that is a million lists",
      "oci-archive",
      () => archiveOf(new Map([["index.json", Buffer.from("[".repeat(1_000_000))]])),
      "is not JSON",
    ],
    ["cut short", "oci-archive", () => archiveOf(ociFiles(image())).slice(0, 2000), "is damaged"],
    [
      "cut short within its gzip",
      "docker-archive",
      () => Bun.gzipSync(archiveOf(dockerFiles(image()))).slice(0, 300),
      "is damaged",
    ],
    ["no archive", "docker-archive", () => Buffer.from("not a tar archive ".repeat(100)), "is damaged"],
    [
      "of a format that bough does not unpack",
      "docker-archive",
      () => Buffer.from("\xfd7zXZ\0 and more", "latin1"),
      "is compressed with xz",
    ],
  ])("%s", async (_, kind, bytes, message) => {
    await room.expectRefused(write(kind, bytes()), message);
  });
});

describe("what docker save writes, changed:", () => {
  const of = (change: (image: Record<string, unknown>) => unknown) => archiveOf(dockerFiles(image(), change));

  test.each<[string, () => Uint8Array, string]>([
    [
      "a configuration outside",
      () => of((same) => ({ ...same, Config: "../../../etc/passwd" })),
      "there is no such file",
    ],
    [
      "an absolute configuration",
      () => of((same) => ({ ...same, Config: "/etc/passwd" })),
      "there is no such file",
    ],
    [
      "a layer outside",
      () => of((same) => ({ ...same, Layers: ["../../../etc/shadow"] })),
      "there is no such file",
    ],
    ["layers that are not a list", () => of((same) => ({ ...same, Layers: "layer.tar" })), "is malformed"],
    ["nothing but nothing", () => of(() => null), "is malformed"],
    [
      "no layer, where the configuration has one",
      () => of((same) => ({ ...same, Layers: [] })),
      "0 layers, its configuration has 1",
    ],
    [
      "one layer more",
      () => of((same) => ({ ...same, Layers: ["layer-0/layer.tar", "layer-0/layer.tar"] })),
      "2 layers, its configuration has 1",
    ],
    [
      "another configuration under the same name",
      () => {
        const files = dockerFiles(image());
        const name = [...files.keys()].find((known) => known.endsWith(".json")) ?? "";
        return archiveOf(changed(files, name, encode({ rootfs: { diff_ids: [] } })));
      },
      "is damaged",
    ],
    [
      "another layer under the same name",
      () => archiveOf(changed(dockerFiles(image()), "layer-0/layer.tar", tarOf([]))),
      "damaged or forged",
    ],
  ])("%s", async (_, bytes, message) => {
    await room.expectRefused(write("docker-archive", bytes()), message);
  });
});

test("no name in it can be taken for a line of bough's own", async () => {
  const name = "layer\n[INFO] tagged as alpine:latest\u001b[2J";
  const files = dockerFiles(image(), (same) => ({ ...same, Layers: [name], RepoTags: [name] }));
  const link = { name, flag: "2", target: "/etc/passwd" };
  for (const reference of ["", ":other"]) {
    const operation = await room.importFrom(
      `${write("docker-archive", archiveOf(files, [link]))}${reference}`,
    );
    expect(operation.error).toContain("layer\\n[INFO] tagged as alpine:latest\\u001b[2J");
  }
});

describe("what is well meant comes in:", () => {
  test.each<[string, string, (raw: RawImage) => Uint8Array]>([
    ["an OCI layout", "oci-archive", (raw) => archiveOf(ociFiles(raw))],
    ["an OCI layout, packed", "oci-archive", (raw) => Bun.gzipSync(archiveOf(ociFiles(raw)))],
    ["docker save", "docker-archive", (raw) => archiveOf(dockerFiles(raw))],
    ["docker save, packed with gzip", "docker-archive", (raw) => Bun.gzipSync(archiveOf(dockerFiles(raw)))],
    [
      "docker save, packed with zstd",
      "docker-archive",
      (raw) => Bun.zstdCompressSync(archiveOf(dockerFiles(raw))),
    ],
    [
      "names that begin with ./",
      "oci-archive",
      (raw) => tarOf([...ociFiles(raw)].map(([name, content]) => ({ name: `./${name}`, content }))),
    ],
    [
      "a layer that is a link to another one, as old versions of Docker write it",
      "docker-archive",
      (raw) => {
        const files = dockerFiles(raw);
        const layer = files.get("layer-0/layer.tar") ?? new Uint8Array();
        const link = { name: "layer-0/layer.tar", flag: "2", target: "../first/layer.tar" };
        return archiveOf(changed(without(files, "layer-0/layer.tar"), "first/layer.tar", layer), [link]);
      },
    ],
  ])("%s", async (_, kind, bytes) => {
    const raw = image();
    const operation = await room.importFrom(write(kind, bytes(raw)));
    expect(await room.textIn(operation, "/number")).toBe(`${count - 1}`);
  });
});
