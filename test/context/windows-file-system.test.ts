/** Reading a context on Windows, with a file system that behaves like Windows'. */
import { describe, expect, test } from "bun:test";
import { chmodSync, lstatSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import {
  type FileSystem,
  windowsFileSystem,
  withSlashes,
} from "../../src/context/file-system/file-system.ts";
import { ignoreRules } from "../../src/context/patterns/ignore.ts";
import { resolveSources } from "../../src/context/sources/sources.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

/** A file system with backslashes as separators and in targets of links, and without modes. */
const likeWindows: FileSystem = {
  readDirectory: (path) => readdirSync(withSlashes(path)),
  stat: (path) => lstatSync(withSlashes(path)),
  readLink: () => "d\\deep\\file.sh",
};
const files = windowsFileSystem(likeWindows);

function makeContext(): string {
  const context = join(temporaryDirectory(), "context");
  writeFiles(context, { "d/deep/file.sh": "echo\n", "../secret": "s" });
  chmodSync(join(context, "d/deep/file.sh"), 0o666);
  symlinkSync("/nowhere", join(context, "link"));
  return context;
}

async function take(source: string) {
  const path = makeContext();
  const { matches } = await resolveSources({
    context: { path, absolutePath: path, realPath: path },
    ignore: ignoreRules([], { defaultExcludes: false }),
    sources: [source],
    signal: new AbortController().signal,
    files,
  });
  return matches.flatMap(({ entries }) => [...entries]);
}

test("files and directories have the mode that Docker gives them on Windows", async () => {
  const entries = await take("d");
  expect(entries.map(({ relativePath, mode }) => [relativePath, mode.toString(8)])).toEqual([
    ["", "755"],
    ["deep", "755"],
    ["deep/file.sh", "755"],
  ]);
});

test("a link's target is followed, and staged, with slashes", async () => {
  expect(await take("link")).toMatchObject([{ type: "file", contextPath: "d/deep/file.sh" }]);
  const all = await take(".");
  expect(all.find(({ type }) => type === "symlink")).toMatchObject({ target: "d/deep/file.sh" });
});

describe("a source with a backslash is not found:", () => {
  test.each(["..\\secret", "d\\..\\..\\secret", "d\\deep\\file.sh"])("COPY %s", async (source) => {
    expect(lstatSync(join(makeContext(), "../secret")).isFile()).toBe(true);
    await expect(take(source)).rejects.toThrow(`no such file or directory in the build context: ${source}`);
  });
});
