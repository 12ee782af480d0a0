/** Requests about the paths of an image: a few one by one, many by listing directories. */
import { beforeEach, describe, expect, test } from "bun:test";
import { createImageInspection } from "../../src/builder/cache/image-inspection.ts";
import type { ImageEntry, PathType } from "../../src/service/images/image-file.ts";

const tree: Record<string, PathType> = {
  "/usr": "directory",
  "/usr/bin": "directory",
  "/bin": "symlink",
  "/gone": "symlink",
  "/file": "file",
};
/** The targets of the links. */
const followed: Record<string, string> = { "/bin": "/usr/bin" };
const follow = (path: string) => path.replace(/^\/[^/]+/, (top) => followed[top] ?? top);

let asked: string[];
let listed: string[];
beforeEach(() => {
  asked = [];
  listed = [];
});

function inspectionOf(canList = true) {
  const inspector: Parameters<typeof createImageInspection>[0] = {
    async pathType(_, path) {
      asked.push(path);
      return path === "/" ? "directory" : tree[follow(path)];
    },
    async listEntries(_, directory) {
      listed.push(directory);
      if (!canList) return undefined;
      const prefix = `${follow(directory).replace(/\/$/, "")}/`;
      const inside = Object.entries(tree).filter(([path]) => path.startsWith(prefix));
      return new Map(
        inside
          .map(([path, type]): [string, ImageEntry] => [path.slice(prefix.length), { type }])
          .filter(([name]) => !name.includes("/")),
      );
    },
    readFile: async () => undefined,
  };
  const known = new Map<string, string>();
  return createImageInspection(
    inspector,
    { inspection: () => true },
    {
      get: (image, question) => known.get(`${image} ${question}`),
      set: (image, question, answer) => void known.set(`${image} ${question}`, answer),
    },
  );
}

test("a few paths are requested one by one, each once", async () => {
  const inspection = inspectionOf();
  for (const _ of [1, 2]) {
    expect(await inspection.isDirectory("i", "/usr/bin")).toBe(true);
    expect(await inspection.isDirectory("i", "/none")).toBe(false);
  }
  expect(asked).toEqual(["/usr/bin", "/none"]);
  expect(listed).toEqual([]);
});

test("a list that shows whether a path is a link shows whether it is a directory, too", async () => {
  const inspection = inspectionOf();
  for (const [path, isDirectory] of [
    ["/usr", true],
    ["/file", false],
    ["/none", false],
    ["/gone", false],
  ] as const) {
    expect(await inspection.readLink("i", path)).toBeUndefined();
    expect(await inspection.isDirectory("i", path)).toBe(isDirectory);
  }
  expect(listed).toEqual(["/"]);
  // Only the service can follow a link.
  expect(asked).toEqual(["/gone"]);
});

describe("ten thousand paths need less than 25 requests, and are right for", () => {
  test.each<[string, boolean]>([
    ["/none/x", false],
    ["/x", false],
    ["/usr/bin", true],
    ["/usr/bin/x", false],
    ["/usr", true],
    ["/bin", true],
    ["/bin/x", false],
    ["/gone/x", false],
    ["/file/x", false],
    ["/file", false],
    ["/", true],
  ])("%s", async (path, isDirectory) => {
    const inspection = inspectionOf();
    for (let index = 0; index < 10_000; index++)
      expect(await inspection.isDirectory("i", `/app/f${index}`)).toBe(false);
    expect(await inspection.isDirectory("i", path)).toBe(isDirectory);
    expect(asked.length + listed.length).toBeLessThan(25);
  });

  test("paths are requested one by one if the service cannot list", async () => {
    const inspection = inspectionOf(false);
    for (let index = 0; index < 100; index++)
      expect(await inspection.isDirectory("i", `/app/f${index}`)).toBe(false);
    expect(await inspection.isDirectory("i", "/usr")).toBe(true);
    expect(asked).toHaveLength(101);
    expect(listed).toEqual(["/"]);
  });
});
