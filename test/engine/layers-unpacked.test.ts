/** The tree of an image whose layers are unpacked separately, as overlayfs shows it. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { contentDigestOf } from "../../src/engine/import/image-config.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { TestEngine } from "../support/engine.ts";
import { digestOf, ociFiles, type RawFiles, writeRawFiles } from "../support/image-bytes.ts";
import { readTar, type TarEntry } from "../support/tar.ts";
import { type RawEntry, tarOf } from "../support/tar-bytes.ts";

setDefaultTimeout(180_000);

let engine: TestEngine;
beforeAll(async () => {
  engine = await TestEngine.open();
});
afterAll(() => engine.close());

async function importLayers(layers: readonly (readonly RawEntry[])[], into = engine) {
  const directory = writeRawFiles(
    temporaryDirectory(),
    ociFiles({ layers: layers.map((layer) => tarOf(layer)) }),
  );
  const registry = { url: `oci:${directory}:latest` };
  return into.finish(await into.json("POST", "/v1/images/import", { registry }));
}

async function treeOf(image: string, from = engine): Promise<TarEntry[]> {
  const { body } = await from.fetch("GET", `/v1/inspect/${image}/archive?path=/`);
  return Array.fromAsync(readTar(body as ReadableStream<Uint8Array>));
}

/** Returns a line such as `/a file 644 0:0 content`. */
function describeEntry({ name, type, mode, uid, gid, beginning, target }: TarEntry): string {
  const shown = type === "file" ? Buffer.from(beginning).toString() : target;
  return `${name.slice(1)} ${type} ${mode.toString(8)} ${uid}:${gid} ${shown}`.trim();
}

async function linesOf(layers: readonly (readonly RawEntry[])[]): Promise<string[]> {
  const { error, result } = await importLayers(layers);
  expect(error).toBeNull();
  return (await treeOf(result?.image ?? "")).map(describeEntry).slice(1);
}

const file = (name: string, content = "", more: Partial<RawEntry> = {}): RawEntry => ({
  name,
  content,
  ...more,
});
const directory = (name: string, more: Partial<RawEntry> = {}): RawEntry => ({
  name: `${name}/`,
  flag: "5",
  mode: 0o755,
  ...more,
});
const link = (name: string, target: string): RawEntry => ({ name, flag: "2", target, mode: 0o777 });
const hardLink = (name: string, target: string): RawEntry => ({ name, flag: "1", target });
const pax = (key: string, value: string): RawEntry => {
  const rest = ` ${key}=${value}\n`;
  const length = [1, 2, 3]
    .map((digits) => rest.length + digits)
    .find((sum) => `${sum}${rest}`.length === sum);
  return { name: "pax", flag: "x", content: `${length}${rest}` };
};

const base = [
  directory("d", { mode: 0o700, uid: 5, gid: 6 }),
  file("d/a", "base"),
  file("d/b", "base"),
  file("top", "base"),
];
const dir = "/d/ directory 700 5:6";

describe("an image of layers with", () => {
  test.each<[string, RawEntry[][], string[]]>([
    ["a file that is deleted", [base, [file("d/.wh.a"), file(".wh.top")]], [dir, "/d/b file 644 0:0 base"]],
    ["a directory that is deleted", [base, [file(".wh.d")]], ["/top file 644 0:0 base"]],
    [
      "a file that is deleted and created in one layer, in either order",
      [base, [file("d/.wh.a"), file("d/a", "new"), file("d/b", "new"), file("d/.wh.b")]],
      [dir, "/d/a file 644 0:0 new", "/d/b file 644 0:0 new", "/top file 644 0:0 base"],
    ],
    [
      "a directory that is deleted and created in one layer",
      [base, [file(".wh.d"), directory("d"), file("d/new", "1")], [file("d/more", "2")]],
      ["/d/ directory 755 0:0", "/d/more file 644 0:0 2", "/d/new file 644 0:0 1", "/top file 644 0:0 base"],
    ],
    [
      "a directory that is deleted after it was created",
      [base, [directory("d"), file("d/new", "1"), file(".wh.d")]],
      ["/d/ directory 755 0:0", "/d/new file 644 0:0 1", "/top file 644 0:0 base"],
    ],
    [
      "an opaque directory whose whiteout is the last entry",
      [base, [file("d/new", "1"), file("d/.wh..wh..opq")], [file(".wh.top")]],
      [dir, "/d/new file 644 0:0 1"],
    ],
    [
      "an opaque root",
      [base, [file("x", "1"), directory("d"), file(".wh..wh..opq")]],
      ["/d/ directory 755 0:0", "/x file 644 0:0 1"],
    ],
    [
      "whiteouts in the lowest layer",
      [[file(".wh.x"), file(".wh..wh..opq"), file("y", "1")]],
      ["/y file 644 0:0 1"],
    ],
    [
      "whiteouts of missing files, which overlayfs would list",
      [
        base,
        [directory("new"), file("new/.wh.x"), file("d/.wh..wh..opq"), file("d/.wh.a"), file("d/x", "1")],
        [file("new/.wh.y"), file(".wh.new"), file(".wh.top")],
        [directory("new"), file("new/.wh.z")],
      ],
      [dir, "/d/x file 644 0:0 1", "/new/ directory 755 0:0"],
    ],
    [
      "whiteouts of AUFS",
      [[file(".wh..wh.plnk"), file(".wh..wh.aufs"), file("y", "1")]],
      ["/y file 644 0:0 1"],
    ],
    [
      "directories without an entry",
      [base, [file("d/c", "1"), file("e/f/g", "2")], [file(".wh.top")]],
      [
        dir,
        ...["/d/a file 644 0:0 base", "/d/b file 644 0:0 base", "/d/c file 644 0:0 1"],
        ...["/e/ directory 755 0:0", "/e/f/ directory 755 0:0", "/e/f/g file 644 0:0 2"],
      ],
    ],
    [
      "a directory that replaces a file, and a file that replaces a directory",
      [base, [directory("top"), file("top/x", "1"), file("d", "file")]],
      ["/d file 644 0:0 file", "/top/ directory 755 0:0", "/top/x file 644 0:0 1"],
    ],
    [
      "two entries with one name",
      [[file("x", "1"), directory("y"), file("y/z", "1"), file("x", "2"), link("y", "x"), file("y", "3")]],
      ["/x file 644 0:0 2", "/y file 644 0:0 3"],
    ],
    [
      "entries below links",
      [
        [
          directory("usr"),
          link("lib", "/usr"),
          link("up", "../../usr"),
          file("lib/a", "1"),
          file("up/b", "2"),
        ],
      ],
      [
        "/lib symlink 777 0:0 /usr",
        "/up symlink 777 0:0 ../../usr",
        ...["/usr/ directory 755 0:0", "/usr/a file 644 0:0 1", "/usr/b file 644 0:0 2"],
      ],
    ],
    [
      "a directory that replaces a link",
      [[directory("usr"), link("lib", "usr"), file("lib/a", "1"), directory("lib"), file("lib/b", "2")]],
      [
        "/lib/ directory 755 0:0",
        "/lib/b file 644 0:0 2",
        "/usr/ directory 755 0:0",
        "/usr/a file 644 0:0 1",
      ],
    ],
    [
      "names with `..` and absolute names",
      [[file("./././x", "1"), file("/y", "2"), file("a/../../z", "3")]],
      ["/x file 644 0:0 1", "/y file 644 0:0 2", "/z file 644 0:0 3"],
    ],
    [
      "a hard link to a file of a lower layer",
      [base, [hardLink("second", "d/a"), hardLink("/third", "./top")]],
      [
        ...[dir, "/d/a file 644 0:0 base", "/d/b file 644 0:0 base"],
        ...["/second file 644 0:0 base", "/third file 644 0:0 base", "/top file 644 0:0 base"],
      ],
    ],
    [
      "hard links",
      [
        [
          file("x", "1", { uid: 7, mode: 0o4755 }),
          link("s", "nowhere"),
          hardLink("y", "/x"),
          hardLink("t", "s"),
        ],
      ],
      [
        "/s symlink 777 0:0 nowhere",
        "/t hardlink 777 0:0 ./s",
        "/x file 4755 7:0 1",
        "/y hardlink 4755 7:0 ./x",
      ],
    ],
    [
      "groups, setgid and sticky directories",
      [
        [
          directory("d", { mode: 0o2775, gid: 8 }),
          directory("t", { mode: 0o1777 }),
          file("d/x", "1"),
          directory("d/y"),
        ],
      ],
      [
        ...["/d/ directory 2775 0:8", "/d/x file 644 0:0 1", "/d/y/ directory 755 0:0"],
        "/t/ directory 1777 0:0",
      ],
    ],
    [
      "pipes and device 0/0, which is overlayfs's own whiteout",
      [base, [{ name: "p", flag: "6", mode: 0o600 }, { name: "top", flag: "3" }, file(".wh.d")]],
      ["/p pipe 600 0:0", "/top file 644 0:0 base"],
    ],
  ])("%s", async (_, layers, lines) => {
    expect(await linesOf(layers)).toEqual(lines);
  });

  test("keeps extended attributes, except overlayfs's, and names that are not UTF-8", async () => {
    const odd = Buffer.concat([Buffer.from("n"), Buffer.from([0xff])]).toString("latin1");
    const bytes = tarOf([
      pax("SCHILY.xattr.user.note", "kept"),
      file("x"),
      pax("SCHILY.xattr.trusted.overlay.opaque", "y"),
      directory("d"),
      file("odd#", "1"),
    ]);
    const at = Buffer.from(bytes).indexOf("odd#");
    bytes.set(Buffer.from(`${odd}\0\0`, "latin1"), at);
    // The header's checksum has to fit the changed bytes.
    const header = bytes.subarray(at, at + 512).fill(0x20, 148, 156);
    header.set(
      Buffer.from(
        header
          .reduce((sum, byte) => sum + byte, 0)
          .toString(8)
          .padStart(6, "0"),
      ),
      148,
    );
    const raw = ociFiles({ layers: [bytes, tarOf(base)] });
    const registry = { url: `oci:${writeRawFiles(temporaryDirectory(), raw)}:latest` };
    const { result } = await engine.finish(await engine.json("POST", "/v1/images/import", { registry }));
    const entries = await treeOf(result?.image ?? "");
    const find = (name: string) => entries.find((entry) => entry.name === name);
    expect([...(find("./x")?.attributes ?? [])]).toEqual([["user.note", btoa("kept")]]);
    expect(find("./d/a")).toBeDefined();
    const namesOnDisk = readdirSync(join(engine.directory, "layers"), "buffer").flatMap((layer) =>
      readdirSync(Buffer.concat([Buffer.from(`${engine.directory}/layers/`), layer]), "buffer"),
    );
    expect(namesOnDisk.map((name) => name.toString("latin1"))).toContain(odd);
  });

  test.each<[string, RawEntry[], string]>([
    ["a hard link to a missing file", [hardLink("x", "nothing")], 'a hard link refers to "nothing"'],
    [
      "a hard link to a directory",
      [directory("d"), hardLink("x", "d")],
      'refers to "d", which is not a file',
    ],
    ["a file below a file", [file("x"), file("x/y")], '"/x" is a file, but other entries are below it'],
    ["circular links", [link("x", "y"), link("y", "x"), file("x/z")], "too many links"],
    ["an unsupported entry type", [{ name: "x", flag: "V" }], '"x" has an unsupported entry type'],
    ["a whiteout of the parent directory", [file(".wh...")], "is not a valid whiteout name"],
    ["a name that is too long", [pax("path", "n".repeat(300)), file("x")], "cannot be unpacked"],
  ])("%s is refused", async (_, layer, message) => {
    expect((await importLayers([layer])).error).toContain(message);
  });
});

describe("layers of images", () => {
  const layerCount = (of: TestEngine) => readdirSync(join(of.directory, "layers")).length;
  const numbers = (count: number): RawEntry[][] =>
    Array.from({ length: count }, (_, index) => [file(`${index}`, `${index}`), file(`.wh.${index - 1}`)]);

  test("are unpacked once for all images that have them", async () => {
    const own = await TestEngine.open();
    const [lower, upper] = [[...base], [file("shared", "1")]];
    const first = await importLayers([lower, upper, [file("one", "1")]], own);
    expect(layerCount(own)).toBe(3);
    const second = await importLayers([lower, upper, [file("two", "2")]], own);
    expect(layerCount(own)).toBe(4);
    await importLayers([lower, upper], own);
    expect(layerCount(own)).toBe(4);
    const names = async (image: string | null = "") =>
      (await treeOf(image ?? "", own)).map(({ name }) => name);
    expect(await names(first.result?.image)).toContain("./one");
    expect(await names(second.result?.image)).toEqual([
      "./",
      "./d/",
      "./d/a",
      "./d/b",
      "./shared",
      "./top",
      "./two",
    ]);
    await own.close();
  });

  test("are fetched only if they are missing", async () => {
    const own = await TestEngine.open();
    const fetched: string[] = [];
    const large = tarOf([file("large", crypto.getRandomValues(new Uint8Array(65_536)).toHex().repeat(64))]);
    const layers = [large, tarOf(base), tarOf([file("shared", "1")])];
    const images = [layers.slice(0, 2), layers].map((some) => ociFiles({ layers: some }));
    const registry = serveImages(images, (digest) => fetched.push(digest));
    const importFrom = async (name: string) => {
      fetched.length = 0;
      const url = `docker://127.0.0.1:${registry.port}/${name}:1`;
      const { error, result } = await own.finish(
        await own.json("POST", "/v1/images/import", { registry: { url } }),
      );
      expect(error).toBeNull();
      return result?.image ?? "";
    };
    await importFrom("0");
    expect(fetched.filter((digest) => layers.map(digestOf).includes(digest))).toHaveLength(2);
    const image = await importFrom("1");
    expect(fetched.filter((digest) => layers.map(digestOf).includes(digest))).toEqual([
      digestOf(layers[2] ?? new Uint8Array()),
    ]);
    expect(layerCount(own)).toBe(3);
    expect((await treeOf(image, own)).map(({ name }) => name)).toEqual([
      ...["./", "./d/", "./d/a", "./d/b", "./large", "./shared", "./top"],
    ]);
    await registry.stop(true);
    await own.close();
  });

  test("are merged if they are more than 128", async () => {
    const own = await TestEngine.open();
    const { error, result } = await importLayers(numbers(150), own);
    expect(error).toBeNull();
    expect(layerCount(own)).toBe(128);
    expect((await treeOf(result?.image ?? "", own)).map(({ name }) => name)).toEqual(["./", "./149"]);
    await own.close();
  });

  test("that an earlier version merged into one can be built on, and are restored as one", async () => {
    const own = await TestEngine.open();
    const [lower, upper, top] = [base, [file("b", "2")], [file(".wh.top")]];
    const { result } = await importLayers([[...lower, ...upper]], own);
    await own.engine.close();
    const blobs = (layers: RawEntry[][]) => layers.map((layer) => tarOf(layer)).map(describeBlob);
    const [flat, made] = [join(own.directory, "blobs/1"), [lower, upper]];
    rmSync(flat, { recursive: true });
    writeRawFiles(flat, new Map(made.map((layer) => [digestOf(tarOf(layer)).slice(7), tarOf(layer)])));
    writeFileSync(join(flat, "layers.json"), JSON.stringify(blobs(made)));
    const database = new Database(join(own.directory, "engine.db"));
    database.run("UPDATE layers SET content = ?", [
      contentDigestOf(made.map((layer) => digestOf(tarOf(layer)))),
    ]);
    database.run("UPDATE images SET config_digest = NULL");
    database.close();
    const later = await TestEngine.open({ directory: own.directory });
    const names = async (image: string) => (await treeOf(image, later)).map(({ name }) => name);
    const next = await importLayers([lower, upper, top], later);
    expect(layerCount(later)).toBe(2);
    expect(await names(next.result?.image ?? "")).toEqual(["./", "./b", "./d/", "./d/a", "./d/b"]);
    rmSync(join(own.directory, "layers/1"), { recursive: true });
    await importLayers([lower, upper], later);
    expect(layerCount(later)).toBe(2);
    for (const image of [result?.image, next.result?.image])
      expect(await names(image ?? "")).toContain("./b");
    await later.close();
  });

  test("that are missing are restored by the next import, with images built on them", async () => {
    const own = await TestEngine.open();
    const layers = [base, [file("shared", "1")], [file("one", "1")]];
    const { result } = await importLayers(layers, own);
    for (const name of readdirSync(join(own.directory, "layers")).slice(0, 2))
      rmSync(join(own.directory, "layers", name), { recursive: true });
    expect((await own.fetch("GET", `/v1/inspect/${result?.image}/list?path=/`)).status).toBe(404);
    const again = await importLayers(layers, own);
    expect(again.result?.image).toBe(result?.image as string);
    expect(layerCount(own)).toBe(3);
    expect((await treeOf(result?.image ?? "", own)).map(describeEntry).slice(1)).toContain(
      "/shared file 644 0:0 1",
    );
    await own.close();
  });
});

function describeBlob(bytes: Uint8Array) {
  const digest = digestOf(bytes);
  const mediaType = "application/vnd.oci.image.layer.v1.tar";
  return { mediaType, digest, size: bytes.byteLength, diffId: digest };
}

/** Starts a registry with each image under its number. */
function serveImages(images: readonly RawFiles[], onBlob: (digest: string) => void): Bun.Server<undefined> {
  return Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/v2/") return new Response("{}");
      const [, number, kind, name = ""] = /^\/v2\/(\d+)\/(manifests|blobs)\/(.+)$/.exec(pathname) ?? [];
      const files = images[Number(number)];
      if (files === undefined) return new Response("", { status: 404 });
      const index = JSON.parse(Buffer.from(files.get("index.json") ?? []).toString());
      const { digest, mediaType } = index.manifests[0];
      if (kind === "blobs") onBlob(name);
      const wanted = kind === "blobs" || name !== "1" ? name : digest;
      const content = files.get(`blobs/sha256/${wanted.slice("sha256:".length)}`) ?? new Uint8Array();
      const type = kind === "manifests" ? mediaType : "application/octet-stream";
      return new Response(new Uint8Array(content), { headers: { "content-type": type } });
    },
  });
}
