/** Headers of an archive that is written while it is sent: bough's reader and GNU tar read the same from them. */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { endBytes, fileHeader } from "../../src/image/tar-header.ts";
import { readTar } from "../../src/image/tar-reader.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { inChunks } from "../support/tar-bytes.ts";

const date = new Date(1_700_000_000_000);
const owned = { mode: 0o4755, uid: 11, gid: 12 };
const long = "ü/".repeat(80);

describe("bough and GNU tar read what was written:", () => {
  test.each<[string, Parameters<typeof fileHeader>[0], Record<string, unknown>]>([
    ["a file", { path: "a/b", size: 0, ...owned }, { type: "file", ...owned, modified: 1_700_000_000 }],
    ["a name of 100 bytes", { path: "n".repeat(100), size: 0, ...owned }, { name: "n".repeat(100) }],
    ["a name of 101 bytes", { path: "n".repeat(101), size: 0, ...owned }, { name: "n".repeat(101) }],
    [
      "a long name with characters beyond ASCII",
      { path: `${long}x`, size: 0, ...owned },
      { name: `${long}x`, mode: 0o4755 },
    ],
    ["a link", { path: "l", link: "a/b", size: 9, ...owned }, { type: "hardlink", target: "a/b", size: 0 }],
    [
      "a long link",
      { path: `${long}l`, link: `${long}x`, size: 9, ...owned },
      { name: `${long}l`, target: `${long}x` },
    ],
    [
      "large numbers",
      { path: "a", size: 0, mode: 0, uid: 2 ** 31 - 1, gid: 3_000_000 },
      { uid: 2 ** 31 - 1, gid: 3_000_000 },
    ],
  ])("%s", async (_, file, expected) => {
    const archive = new Uint8Array(Buffer.concat([fileHeader(file, date), new Uint8Array(endBytes)]));
    const entries = [];
    for await (const entry of readTar(inChunks(archive))) entries.push(entry);
    expect(entries).toHaveLength(1);
    expect(entries[0]).toMatchObject(expected);

    const path = join(temporaryDirectory(), "a.tar");
    writeFileSync(path, archive);
    const { stdout } = Bun.spawnSync(["tar", "--numeric-owner", "--quoting-style=literal", "-tvf", path]);
    const link = file.link === undefined ? "" : ` link to ${file.link}`;
    expect(stdout.toString()).toContain(` ${file.uid}/${file.gid} `);
    expect(stdout.toString()).toEndWith(` ${file.path}${link}\n`);
  });

  test("a size beyond 8 GiB", async () => {
    const header = fileHeader({ path: "a", size: 2 ** 34 + 1, ...owned }, date);
    const { value } = await readTar(inChunks(header)).next();
    expect(value).toMatchObject({ size: 2 ** 34 + 1 });
  });
});
