/** Layers of local images that are not compressed: exports have their archives byte for byte, and the disk has their files once. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openDatabase } from "../../src/database.ts";
import { checkEngine } from "../../src/engine/check/check.ts";
import { checkLayers, emptyReport } from "../../src/engine/check/contents.ts";
import { migrations } from "../../src/engine/engine-directory.ts";
import { makeLayout } from "../../src/engine/layout.ts";
import { diskUsage } from "../../src/engine/system/disk.ts";
import type { ImageLayer } from "../../src/service/wire/image.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { TestEngine } from "../support/engine.ts";
import { digestOf, ociFiles, writeRawFiles } from "../support/image-bytes.ts";
import { type RawEntry, tarOf } from "../support/tar-bytes.ts";

setDefaultTimeout(120_000);

let engine: TestEngine;
beforeAll(async () => {
  engine = await TestEngine.open();
});
afterAll(() => engine.close());

async function importPlain(layers: readonly Uint8Array[], into = engine): Promise<string> {
  const directory = writeRawFiles(temporaryDirectory(), ociFiles({ layers: [...layers] }));
  const { error, result } = await into.finish(
    await into.json("POST", "/v1/images/import", { registry: { url: `oci:${directory}:latest` } }),
  );
  expect(error).toBeNull();
  return result?.image ?? "";
}

async function layersOf(image: string, from = engine): Promise<ImageLayer[]> {
  return (await from.json<{ layers: ImageLayer[] }>("GET", `/v1/images/${image}/layers`)).layers;
}

/** Returns the digests of the archives that the engine gives out, and those that it promises. */
async function digestsOf(image: string, from = engine) {
  const layers = await layersOf(image, from);
  const read = layers.map(async ({ id }) =>
    digestOf(await (await from.fetch("GET", `/v1/images/${image}/layers/${id}`)).bytes()),
  );
  return { read: await Promise.all(read), promised: layers.map(({ blob }) => blob?.digest) };
}

/** Bytes that don't shrink, different for each seed. */
function noise(bytes: number, seed = 1): Uint8Array {
  const made = new Uint8Array(bytes);
  for (let at = 0, state = seed; at < bytes; at++) {
    state = (state * 1_103_515_245 + 12_345) & 0x7fff_ffff;
    made[at] = state >> 16;
  }
  return made;
}

const file = (name: string, content: string | Uint8Array, more: Partial<RawEntry> = {}): RawEntry => ({
  ...{ name, content },
  ...more,
});
const pax = (key: string, value: string): RawEntry => {
  const rest = ` ${key}=${value}\n`;
  const length = [1, 2, 3]
    .map((digits) => rest.length + digits)
    .find((sum) => `${sum}${rest}`.length === sum);
  return { name: "pax", flag: "x", content: `${length}${rest}` };
};
const large = noise(300_000);

describe("the archive is made again byte for byte if it has", () => {
  test.each<[string, Uint8Array]>([
    [
      "files of many sizes",
      tarOf([0, 1, 511, 512, 513, 131_072, 300_000].map((size) => file(`f${size}`, noise(size, size + 1)))),
    ],
    [
      "many small files",
      tarOf(Array.from({ length: 5_000 }, (_, at) => file(`d/${at % 70}/${at}`, `content ${at}`))),
    ],
    ["no end", tarOf([file("a", large)], { end: false })],
    ["bytes after its end", Buffer.concat([tarOf([file("a", large)]), noise(3_000_000)])],
    ["a name twice", tarOf([file("a", large), file("b", "b"), file("a", "another")])],
    [
      "a directory in the place of a file",
      tarOf([file("a", large), { name: "a/", flag: "5" }, file("a/b", "b")]),
    ],
    [
      "a link in the place of a file",
      tarOf([file("a", large), file("b", "b"), { name: "a", flag: "1", target: "b" }]),
    ],
    ["hard links", tarOf([file("a", large), { name: "b", flag: "1", target: "a" }])],
    [
      "a path through a link",
      tarOf([{ name: "real/", flag: "5" }, { name: "by", flag: "2", target: "real" }, file("by/a", large)]),
    ],
    ["a deleted name that has a content", tarOf([file(".wh.gone", large), file("a", "a")])],
    ["a file where one is deleted", tarOf([file(".wh.a", ""), file("a", large)])],
    ["an entry of an unknown type with a content", tarOf([file("a", "a"), file("b", large, { flag: "7" })])],
    [
      "a name from an extended header",
      tarOf([pax("path", `${"long/".repeat(60)}name`), file("short", large)]),
    ],
    [
      "a name that is not UTF-8",
      tarOf([
        { name: "pax", flag: "x", content: Buffer.from("11 path=\xff\xfe\n", "latin1") },
        file("short", large),
      ]),
    ],
    ["files that nobody may read", tarOf([file("a", large, { mode: 0 })])],
    ["a sparse file", tarOf([pax("GNU.sparse.map", "0,1000,200000,1000"), file("a", noise(2_000))])],
  ])("%s", async (_, archive) => {
    const image = await importPlain([archive]);
    const digest = digestOf(archive);
    expect(await digestsOf(image)).toEqual({ read: [digest], promised: [digest] });
  });

  test("been merged with others, since they are too many", async () => {
    const own = await TestEngine.open();
    const archives = Array.from({ length: 150 }, (_, at) =>
      tarOf([file("same", `${at}`), file(`own-${at}`, "x")]),
    );
    const image = await importPlain(archives, own);
    const digests = archives.map((archive) => digestOf(archive));
    expect(await digestsOf(image, own)).toEqual({ read: digests, promised: digests });
    await own.close();
  });
});

describe("the disk", () => {
  const layer = tarOf([
    file("large", large),
    ...Array.from({ length: 200 }, (_, at) => file(`f${at}`, noise(3_000, at))),
  ]);
  const digest = digestOf(layer);
  let own: TestEngine;
  let image: string;
  beforeAll(async () => {
    own = await TestEngine.open();
    image = await importPlain([layer], own);
  });
  afterAll(() => own.close());
  const blobs = () => join(own.directory, "blobs");
  const splits = () =>
    readdirSync(blobs(), { recursive: true }).filter((name) => `${name}`.endsWith(".tar-split"));

  test("has the contents of files once, and the rest in a fiftieth of the archive", async () => {
    expect(diskUsage(join(own.directory, "layers"))).toBeWithin(900_000, 901_000);
    expect(diskUsage(blobs())).toBeLessThan(layer.byteLength / 50);
    expect(splits()).toHaveLength(1);
  });

  test("has the same again after another import, if the split was removed", async () => {
    const before = diskUsage(blobs());
    for (const name of readdirSync(blobs())) rmSync(join(blobs(), name), { recursive: true });
    expect((await digestsOf(image, own)).promised).toEqual([undefined]);
    expect(await importPlain([layer], own)).toBe(image);
    expect(diskUsage(blobs())).toBe(before);
    expect(await digestsOf(image, own)).toEqual({ read: [digest], promised: [digest] });
  });

  test("has a split in the place of the whole archive that an earlier version has kept, once that is imported again", async () => {
    const before = diskUsage(blobs());
    const kept = join(blobs(), "1");
    rmSync(kept, { recursive: true });
    const mediaType = "application/vnd.oci.image.layer.v1.tar";
    const list = JSON.stringify([{ mediaType, digest, size: layer.byteLength, diffId: digest }]);
    writeRawFiles(
      kept,
      new Map([
        [digest.slice(7), layer],
        ["layers.json", Buffer.from(list)],
      ]),
    );
    expect(await digestsOf(image, own)).toEqual({ read: [digest], promised: [digest] });
    expect(await importPlain([layer], own)).toBe(image);
    expect(diskUsage(blobs())).toBe(before);
    expect(await digestsOf(image, own)).toEqual({ read: [digest], promised: [digest] });
  });

  test("has all of the archive, compressed, if the layer that is there has other contents", async () => {
    const content = join(own.directory, "layers/1/large");
    const before = diskUsage(blobs());
    rmSync(join(blobs(), "1"), { recursive: true });
    writeFileSync(content, noise(large.byteLength, 7));
    await importPlain([layer], own);
    expect(await digestsOf(image, own)).toEqual({ read: [digest], promised: [digest] });
    writeFileSync(content, large);
    rmSync(join(blobs(), "1"), { recursive: true });
    await importPlain([layer], own);
    expect(diskUsage(blobs())).toBe(before);
  });

  test("has no copy of an archive whose names occur twice, but all of it, compressed", async () => {
    const twice = tarOf([file("a", "old".repeat(100_000)), file("a", "new")]);
    const before = diskUsage(blobs());
    await importPlain([twice], own);
    expect(diskUsage(blobs()) - before).toBeWithin(1, 10_000);
  });

  test("is checked the first time against what was imported, and gives way to Ctrl-C", async () => {
    const changed = await TestEngine.open();
    await importPlain([layer], changed);
    await changed.engine.close();
    const content = join(changed.directory, "layers/1/large");
    writeFileSync(content, noise(large.byteLength, 7));
    const database = openDatabase(join(changed.directory, "engine.db"), migrations);
    const layout = makeLayout(changed.directory);
    const check = async () => {
      const [report, steps] = [emptyReport(), new Set<number>()];
      await checkLayers({ database, layout, report, pace: { step: () => void steps.add(report.bytes) } });
      return { steps, bytes: report.bytes, damage: report.damage.map(({ kind, name }) => `${kind} ${name}`) };
    };
    expect((await check()).damage).toEqual(["layer 1", "blob 1"]);
    // It has not taken what it found for what was imported.
    expect((await check()).damage).toEqual(["layer 1", "blob 1"]);
    writeFileSync(content, large);
    const { steps, bytes, damage } = await check();
    expect(damage).toEqual([]);
    const [inFirstHalf, all] = [[...steps].filter((at) => at < bytes / 2).length, steps.size];
    expect([inFirstHalf > 100, all - inFirstHalf > 100]).toEqual([true, true]);
    database.close();
    await changed.close();
  });

  test("is checked: a file or a split that has changed is found", async () => {
    await own.engine.close();
    const options = { signal: new AbortController().signal, onProgress: () => undefined };
    const damage = async () =>
      (await checkEngine(own.directory, options)).damage.map(({ kind, name }) => `${kind} ${name}`);
    expect(await damage()).toEqual([]);
    const content = join(own.directory, "layers/1/large");
    writeFileSync(content, noise(large.byteLength, 7));
    expect(await damage()).toEqual(["layer 1", "blob 1"]);
    truncateSync(content, 1);
    expect(await damage()).toContain("blob 1");
    writeFileSync(content, large);
    const split = join(blobs(), String(splits().find((name) => `${name}`.startsWith("1/"))));
    const kept = await Bun.file(split).bytes();
    kept[kept.length - 9] = (kept[kept.length - 9] ?? 0) ^ 255;
    writeFileSync(split, kept);
    expect(await damage()).toContain("blob 1");
  });
});
