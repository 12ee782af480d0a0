/** Layers of the engine as OCI layers, tested without an engine. */
import { describe, expect, test } from "bun:test";
import { linkSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { streamLayer } from "../../src/engine/export/layer-archive.ts";
import { writeAttributes } from "../../src/engine/system/xattrs.ts";
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
