/** Malicious image archives. bough reads them itself: no other program unpacks them. */
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

let importing: ImportingEngine;
let count = 0;

beforeAll(async () => {
  importing = await openImportingEngine();
});
afterAll(() => importing.engine.close());

/** Returns a different image for each call, so that no import finds it stored already. */
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

describe("entries that are not part of the image are never unpacked:", () => {
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
      "a directory at the path of a link",
      (canary) => [
        { name: "blobs2", flag: "2", target: canary },
        { name: "blobs2/", flag: "5", mode: 0 },
      ],
    ],
  ])("%s", async (_, others) => {
    const before = importing.canary.state();
    for (const kind of ["oci-archive", "docker-archive"]) {
      const files = kind === "oci-archive" ? ociFiles(image()) : dockerFiles(image());
      const operation = await importing.importFrom(
        write(kind, archiveOf(files, others(importing.canary.path))),
      );
      expect(operation).toMatchObject({ status: "SUCCESS", error: null });
    }
    expect(importing.canary.state()).toBe(before);
    expect(readdirSync("/tmp")).not.toContain("bough-escaped");
  });
});

describe("refuses an index.json that is:", () => {
  test.each<[string, (canary: string) => RawEntry, string]>([
    [
      "a link out of the archive",
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
      "a hard link out of the archive",
      (canary) => ({ name: "index.json", flag: "1", target: `${canary}/secret` }),
      "whose target is not in the archive",
    ],
    ["a device", () => ({ name: "index.json", flag: "3" }), "is not a regular file"],
    ["a pipe", () => ({ name: "index.json", flag: "6" }), "is not a regular file"],
    ["a directory", () => ({ name: "index.json/", flag: "5" }), "is not a regular file"],
  ])("%s", async (_, entry, message) => {
    const files = without(ociFiles(image()), "index.json");
    await importing.expectRefused(
      write("oci-archive", archiveOf(files, [entry(importing.canary.path)])),
      message,
    );
  });

  test("a sparse file", async () => {
    const [records, map] = [
      "22 GNU.sparse.major=1\n28 GNU.sparse.realsize=1000\n",
      "1\n0\n2\n".padEnd(512, "\0"),
    ];
    const sparse = [
      { name: "p", flag: "x", content: records },
      { name: "index.json", content: `${map}{}` },
    ];
    const files = without(ociFiles(image()), "index.json");
    await importing.expectRefused(
      write("oci-archive", archiveOf(files, sparse)),
      "is a sparse file, which is not supported here",
    );
  });

  test("in the archive twice", async () => {
    const files = ociFiles(image());
    const twice = archiveOf(files, [{ name: "./index.json", content: '{"manifests":[]}' }]);
    await importing.expectRefused(write("oci-archive", twice), "occurs more than once");
  });
});

test.each<[string, (directory: string) => string]>([
  ["a device", () => "/dev/zero"],
  ["a directory", (directory) => directory],
  [
    "a pipe without a writer",
    (directory) => {
      expect(Bun.spawnSync(["mkfifo", join(directory, "pipe")]).success).toBe(true);
      return join(directory, "pipe");
    },
  ],
])("%s is not an archive", async (_, makePath) => {
  await importing.expectRefused(`oci-archive:${makePath(temporaryDirectory())}`, "is not a regular file");
});

describe("refuses an archive that is too large, damaged or unsupported:", () => {
  const zeros = new Uint8Array(64 * 1024 ** 2);

  test.each<[string, string, () => Uint8Array, string]>([
    [
      "a gzip bomb",
      "oci-archive",
      () => Bun.gzipSync(tarOf([{ name: "x", content: zeros }])),
      "unpacks to more than 33 MB",
    ],
    [
      "a zstd bomb",
      "docker-archive",
      () => Bun.zstdCompressSync(tarOf([{ name: "x", content: zeros }])),
      "unpacks to more than 33 MB",
    ],
    [
      "a layer that is a gzip bomb",
      "oci-archive",
      () => archiveOf(ociFiles({ layers: [Bun.gzipSync(tarOf([{ name: "x", content: zeros }]))] })),
      "unpacks to more than 33 MB",
    ],
    [
      "too many files that are not part of the image",
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
      "a manifest of a million nested lists",
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
    [
      "not a tar archive",
      "docker-archive",
      () => Buffer.from("not a tar archive ".repeat(100)),
      "is damaged",
    ],
    [
      "compressed in a format that bough does not unpack",
      "docker-archive",
      () => Buffer.from("\xfd7zXZ\0 and more", "latin1"),
      "is compressed with xz",
    ],
  ])("%s", async (_, kind, bytes, message) => {
    await importing.expectRefused(write(kind, bytes()), message);
  });
});

describe("refuses an archive of docker save with:", () => {
  const saved = (change: (image: Record<string, unknown>) => unknown) =>
    archiveOf(dockerFiles(image(), change));

  test.each<[string, () => Uint8Array, string]>([
    [
      "a configuration outside of the archive",
      () => saved((same) => ({ ...same, Config: "../../../etc/passwd" })),
      "there is no such file",
    ],
    [
      "an absolute path of the configuration",
      () => saved((same) => ({ ...same, Config: "/etc/passwd" })),
      "there is no such file",
    ],
    [
      "a layer outside of the archive",
      () => saved((same) => ({ ...same, Layers: ["../../../etc/shadow"] })),
      "there is no such file",
    ],
    ["layers that are not a list", () => saved((same) => ({ ...same, Layers: "layer.tar" })), "is malformed"],
    ["a manifest of null", () => saved(() => null), "is malformed"],
    [
      "no layer, although the configuration has one",
      () => saved((same) => ({ ...same, Layers: [] })),
      "0 layers, its configuration has 1",
    ],
    [
      "one layer more than the configuration has",
      () => saved((same) => ({ ...same, Layers: ["layer-0/layer.tar", "layer-0/layer.tar"] })),
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
    await importing.expectRefused(write("docker-archive", bytes()), message);
  });
});

test("line ends and control sequences in an archive's names are escaped in errors", async () => {
  const name = "layer\n[INFO] tagged as alpine:latest\u001b[2J";
  const files = dockerFiles(image(), (same) => ({ ...same, Layers: [name], RepoTags: [name] }));
  const link = { name, flag: "2", target: "/etc/passwd" };
  for (const reference of ["", ":other"]) {
    const operation = await importing.importFrom(
      `${write("docker-archive", archiveOf(files, [link]))}${reference}`,
    );
    expect(operation.error).toContain("layer\\n[INFO] tagged as alpine:latest\\u001b[2J");
  }
});

describe("imports:", () => {
  test.each<[string, string, (raw: RawImage) => Uint8Array]>([
    ["an OCI layout", "oci-archive", (raw) => archiveOf(ociFiles(raw))],
    ["an OCI layout, compressed with gzip", "oci-archive", (raw) => Bun.gzipSync(archiveOf(ociFiles(raw)))],
    ["an archive of docker save", "docker-archive", (raw) => archiveOf(dockerFiles(raw))],
    [
      "an archive of docker save, compressed with gzip",
      "docker-archive",
      (raw) => Bun.gzipSync(archiveOf(dockerFiles(raw))),
    ],
    [
      "an archive of docker save, compressed with zstd",
      "docker-archive",
      (raw) => Bun.zstdCompressSync(archiveOf(dockerFiles(raw))),
    ],
    [
      "names that begin with ./",
      "oci-archive",
      (raw) => tarOf([...ociFiles(raw)].map(([name, content]) => ({ name: `./${name}`, content }))),
    ],
    [
      "a layer that is a link to another layer, as old versions of Docker write it",
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
    const operation = await importing.importFrom(write(kind, bytes(raw)));
    expect(await importing.textIn(operation, "/number")).toBe(`${count - 1}`);
  });
});
