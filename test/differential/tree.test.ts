/** The comparison of trees reads all attributes, and finds every difference. */
import { expect, test } from "bun:test";
import { chmodSync, linkSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { compareTrees, formatDifferences, isLeftByBuildah } from "./compare.ts";
import { readTree, type Tree } from "./tree.ts";

const long = `${"directory/".repeat(30)}${"n".repeat(200)}`;

function makeTree(): string {
  const root = temporaryDirectory();
  writeFiles(root, {
    "a b\nc": "text\n",
    "d/e": "directory/",
    ".hidden": "h\n",
    link: { link: "a b\nc" },
    [long]: "long\n",
  });
  writeFileSync(join(root, "sparse"), "begin");
  truncateSync(join(root, "sparse"), 1 << 20);
  linkSync(join(root, "a b\nc"), join(root, "d/second"));
  return root;
}

async function read(root: string, ...options: string[]): Promise<Tree> {
  const owner = ["--owner=1", "--group=2", "--numeric-owner"];
  const tar = Bun.spawn(["tar", "--create", ...options, ...owner, `--directory=${root}`, "."]);
  const tree = await readTree(tar.stdout);
  expect(await tar.exited).toBe(0);
  return tree;
}

test("a tree reads the same from every format of tar", async () => {
  const root = makeTree();
  const tree = await read(root, "--format=posix");
  expect(tree.get("/a b\nc")?.line).toBe(
    'file 0644 1:2 5 bytes sha256:b9e68e1bea3e5b19 one file as "/a b\\nc" and "/d/second"',
  );
  expect(tree.get("/link")?.line).toBe('symlink 0777 1:2 -> "a b\\nc"');
  expect(tree.get("/.hidden")?.line).toStartWith("file 0644 1:2 2 bytes ");
  expect(tree.get("/d/e")?.line).toBe("directory 0755 1:2");
  expect(tree.get("/sparse")?.line).toStartWith("file 0644 1:2 1048576 bytes ");
  expect(tree.get(`/${long}`)?.line).toStartWith("file 0644 1:2 5 bytes ");
  // Without ./ before the names, as Docker writes them.
  const withoutPrefix = await read(root, "--format=posix", "--transform=s,^\\./,,");
  expect(compareTrees(withoutPrefix, tree)).toEqual([]);
  for (const options of [["--format=gnu"], ["--format=posix", "--sparse"], ["--format=posix", "--sort=name"]])
    expect(compareTrees(await read(root, ...options), tree)).toEqual([]);
});

test.each<[string, (root: string) => void, string]>([
  ["different content", (root) => writeFileSync(join(root, "d/second"), "TEXT\n"), '"TEXT\\n"'],
  ["a different mode", (root) => chmodSync(join(root, "d/e"), 0o700), "directory 0700 1:2"],
  ["a missing file", (root) => rmSync(join(root, "link")), "nothing"],
  ["an additional file", (root) => writeFileSync(join(root, "d/e/f"), ""), "/d/e/f"],
  ["two files in place of a hard link", (root) => writeCopy(join(root, "d/second")), "one file as"],
])("the comparison shows %s", async (_, change, expected) => {
  const root = makeTree();
  const before = await read(root, "--format=posix");
  change(root);
  const differences = compareTrees(await read(root, "--format=posix"), before);
  expect(formatDifferences(differences, "buildah")).toContain(expected);
});

test("mount points that buildah leaves are ignored only if bough's image has no such entry", () => {
  const tree = (line: string): Tree =>
    new Map([["/proc", { line, beginning: new Uint8Array(), modified: undefined }]]);
  const nothing: Tree = new Map();
  const remaining = (bough: Tree, other: Tree) =>
    compareTrees(bough, other).filter((difference) => !isLeftByBuildah(difference));
  expect(remaining(nothing, tree("directory 0755 0:0"))).toEqual([]);
  expect(remaining(nothing, tree("directory 0700 0:0"))).toHaveLength(1);
  expect(remaining(tree("directory 0755 0:0"), nothing)).toHaveLength(1);
});

function writeCopy(path: string): void {
  rmSync(path);
  writeFileSync(path, "text\n");
}
