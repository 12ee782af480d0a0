import { afterEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { openBuildContext } from "../../src/context/build-context.ts";
import { hashFiles } from "../../src/context/hash.ts";
import { noIgnoreRules } from "../../src/context/ignore.ts";
import { resolveSources } from "../../src/context/sources.ts";

const directories: string[] = [];
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

function makeContext(files: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), "bough-context-"));
  directories.push(root);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}

test("a directory stands for its contents, links in it stay links, and every file has its hash", async () => {
  const root = makeContext({ "app/main.sh": "echo hi\n", "app/lib/a b.txt": "" });
  symlinkSync("main.sh", join(root, "app/start"));
  const context = await openBuildContext(root, "/");
  const { matches, warnings } = await resolveSources({ context, ignore: noIgnoreRules, sources: ["app"] });
  const entries = matches.flatMap((match) => match.entries);
  expect(entries.map(({ type, relativePath }) => [type, relativePath])).toEqual([
    ["directory", ""],
    ["directory", "lib"],
    ["file", "lib/a b.txt"],
    ["file", "main.sh"],
    ["symlink", "start"],
  ]);
  const hashes = await hashFiles(entries.filter((entry) => entry.type === "file"));
  expect(hashes.get(join(context.realPath, "app/lib/a b.txt"))).toBe(
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  );
  expect(warnings).toEqual([]);
});
