/** Layers of the engine as OCI layers, tested without an engine. */
import { describe, expect, test } from "bun:test";
import {
  linkSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { streamLayer } from "../../src/engine/export/layer-archive.ts";
import { openPacker } from "../../src/engine/export/pack-layer.ts";
import { writeAttributes } from "../../src/engine/system/xattrs.ts";
import { digestOf } from "../../src/image/digest.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { readTar } from "../support/tar.ts";

const options = { inUserNamespace: false, clampTo: undefined, signal: new AbortController().signal };

async function listLayer(directory: string, clampTo?: number) {
  const entries = [];
  for await (const entry of readTar(streamLayer(directory, { ...options, clampTo }))) entries.push(entry);
  return entries;
}

function run(...command: string[]): void {
  const { success, stderr } = Bun.spawnSync(command);
  if (!success) throw new Error(`${command.join(" ")}: ${stderr}`);
}

describe("a layer's archive", () => {
  test("has whiteouts for deleted files, in the order of names", async () => {
    const layer = temporaryDirectory();
    mkdirSync(join(layer, "b"));
    writeFileSync(join(layer, "b/new"), "x");
    writeAttributes(join(layer, "b"), [{ name: "trusted.overlay.opaque", value: Buffer.from("y") }]);
    run("mknod", join(layer, "a"), "c", "0", "0");
    run("mknod", join(layer, "b.txt"), "c", "0", "0");
    const names = (await listLayer(layer)).map(({ name }) => name);
    expect(names).toEqual(["./", ".wh.a", "b/", "b/.wh..wh..opq", "b/new", ".wh.b.txt"]);
  });

  test("keeps links, extended attributes and names that are not UTF-8", async () => {
    const layer = temporaryDirectory();
    writeFileSync(join(layer, "file"), "content");
    linkSync(join(layer, "file"), join(layer, "second"));
    symlinkSync("file", join(layer, "to"));
    writeFileSync(Buffer.concat([Buffer.from(`${layer}/`), Buffer.from([0x66, 0xff])]), "");
    writeAttributes(join(layer, "file"), [{ name: "user.note", value: Buffer.from("a\nb\0") }]);
    const entries = await listLayer(layer);
    expect(entries.map(({ type }) => type)).toEqual(["directory", "file", "file", "hardlink", "symlink"]);
    const file = entries.find(({ name }) => name === "file");
    expect([...(file?.attributes ?? [])].map(([name]) => name)).toEqual(["user.note"]);
    const second = entries.find(({ name }) => name === "second");
    expect(second?.target).toBe("file");
    expect(second?.attributes).toEqual(file?.attributes);
  });

  test("has no time after the given one", async () => {
    const layer = temporaryDirectory();
    for (const [name, time] of [
      ["early", 5],
      ["late", 5000],
    ] as const) {
      writeFileSync(join(layer, name), "");
      utimesSync(join(layer, name), time, time + 0.75);
    }
    const times = async (clampTo?: number) =>
      (await listLayer(layer, clampTo)).filter(({ type }) => type === "file").map(({ modified }) => modified);
    expect(await times()).toEqual([5, 5000]);
    expect(await times(100)).toEqual([5, 100]);
  });

  test("refuses a file with the name of a whiteout", async () => {
    const layer = temporaryDirectory();
    writeFileSync(join(layer, ".wh.mine"), "");
    await expect(listLayer(layer)).rejects.toThrow("/.wh.mine can't be in a layer");
  });
});

describe("a packed layer", () => {
  const job = { compression: "gzip", clampTo: undefined, onRead: () => {} } as const;

  async function pack(
    directory: string,
    { signal, closing }: { signal: AbortSignal; closing: AbortController } = {
      signal: new AbortController().signal,
      closing: new AbortController(),
    },
  ) {
    const path = join(temporaryDirectory(), "packed");
    writeFileSync(path, "before");
    try {
      const packer = openPacker(closing.signal);
      const layer = { directory, inUserNamespace: false };
      const blob = await packer.pack(layer, { ...job, path, position: 6, signal });
      return { blob, content: readFileSync(path) };
    } finally {
      closing.abort();
    }
  }

  // A thread packs the larger one.
  test.each([1000, 20_000_000])("with a file of %d bytes has the digests of its archive", async (size) => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, "file"), Buffer.alloc(size, "content"));
    const { blob, content } = await pack(directory);
    expect(content.subarray(0, 6).toString()).toBe("before");
    const stored = content.subarray(6);
    const archive = Buffer.concat(await Array.fromAsync(streamLayer(directory, options)));
    expect({ ...blob, mediaType: undefined }).toEqual({
      digest: digestOf(stored),
      size: stored.byteLength,
      diffId: digestOf(archive),
      mediaType: undefined,
    });
    expect(gunzipSync(stored).equals(archive)).toBe(true);
  });

  test("with a file of a whiteout's name is refused, in a thread too", async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, ".wh.mine"), Buffer.alloc(20_000_000));
    await expect(pack(directory)).rejects.toThrow("/.wh.mine can't be in a layer");
  });

  test.each(["signal", "closing"] as const)("is given up when %s is aborted", async (which) => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, "file"), "");
    // Sparse: it would take minutes.
    truncateSync(join(directory, "file"), 100_000_000_000);
    const [signal, closing] = [new AbortController(), new AbortController()];
    const packed = pack(directory, { signal: signal.signal, closing });
    setImmediate(() => ({ signal, closing })[which].abort(new Error("interrupted")));
    await expect(packed).rejects.toThrow("interrupted");
  });
});
