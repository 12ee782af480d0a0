/** Reading a context on Windows, with a file system that behaves like Windows'. */
import { describe, expect, test } from "bun:test";
import { chmodSync, lstatSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import {
  type FileSystem,
  windowsFileSystem,
  withSlashes,
} from "../../src/context/file-system/file-system.ts";
import { withModes } from "../../src/context/file-system/recorded-modes.ts";
import { ignoreRules, parseIgnoreFile } from "../../src/context/patterns/ignore.ts";
import type { Rule } from "../../src/context/patterns/rules.ts";
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

async function take(source: string, rules: readonly Rule[] = [], system: FileSystem = files) {
  const path = makeContext();
  const { matches } = await resolveSources({
    context: { path, absolutePath: path, realPath: path },
    ignore: ignoreRules(rules, { defaultExcludes: false }),
    sources: [source],
    signal: new AbortController().signal,
    files: system,
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

test("modes and links that came with the files are those of the files, as far as they are known", async () => {
  const context = makeContext();
  writeFiles(context, { kept: "d/deep/file.sh" });
  const recorded = withModes(
    files,
    context,
    new Map<string, number | "link">([
      ["d/deep/file.sh", 0o4640],
      ["kept", "link"],
    ]),
  );
  const { matches } = await resolveSources({
    context: { path: context, absolutePath: context, realPath: context },
    ignore: ignoreRules([], { defaultExcludes: false }),
    sources: ["."],
    files: recorded,
  });
  const found = new Map(
    matches.flatMap(({ entries }) => [...entries]).map((entry) => [entry.contextPath, entry]),
  );
  expect(found.get("d/deep/file.sh")?.mode).toBe(0o4640);
  expect(found.get("d")?.mode).toBe(0o755);
  expect(found.get("kept")).toMatchObject({ type: "symlink", target: "d/deep/file.sh" });
});

test.each<[NodeJS.Platform, number]>([
  ["win32", 0],
  ["linux", 1],
])(
  "a backslash in an ignore file separates names on Windows, and escapes a character elsewhere (%s)",
  async (platform, count) => {
    const rules = parseIgnoreFile("d\\deep\\*.sh\n", ".dockerignore", platform);
    const entries = await take("d", rules);
    expect(entries.filter(({ type }) => type === "file")).toHaveLength(count);
  },
);

test.each(["D/deep/file.sh", "d/deep/FILE.SH"])(
  "a file that the system also gives as %s is there under the listed name only",
  async (source) => {
    const stat = (path: string) => files.stat(path.replace("/D/", "/d/").replace("FILE.SH", "file.sh"));
    const found = take(source, [], { ...files, stat });
    await expect(found).rejects.toThrow("no such file or directory in the build context");
  },
);

describe("a source with a backslash is not found:", () => {
  test.each(["..\\secret", "d\\..\\..\\secret", "d\\deep\\file.sh"])("COPY %s", async (source) => {
    expect(lstatSync(join(makeContext(), "../secret")).isFile()).toBe(true);
    await expect(take(source)).rejects.toThrow(`no such file or directory in the build context: ${source}`);
  });
});
