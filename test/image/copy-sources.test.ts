/** The files that the words of a `COPY --from` name. Each row was tried with Docker (BuildKit) on the same tree. */
import { describe, expect, test } from "bun:test";
import { posix } from "node:path";
import { type ImageTree, type ImageTreeEntry, resolveCopySources } from "../../src/image/copy-sources.ts";

const directory: ImageTreeEntry = { type: "directory" };
const file: ImageTreeEntry = { type: "file" };
const link = (target: string): ImageTreeEntry => ({ type: "symlink", target });

const entries: Record<string, ImageTreeEntry> = {
  "/.hid": directory,
  "/absl": link("/data/a.txt"),
  "/back\\slash": file,
  "/data": directory,
  "/data/a.txt": file,
  "/data/b.txt": file,
  "/data/dangling": link("nowhere"),
  "/data/dlink": link("sub"),
  "/data/link.txt": link("a.txt"),
  "/data/pipe": { type: "other" },
  "/data/sub": directory,
  "/data/sub/s.txt": file,
  "/dl": link("/data"),
  "/loop": link("loop"),
  "/real": directory,
  "/real/esc": link("../../../../data/a.txt"),
  "/real/through": link("../dl/sub/../b.txt"),
  "/we*ird": directory,
  "/we*ird/f": file,
};

const tree: ImageTree = {
  lookUp: async (path) => (path === "/" ? directory : entries[path]),
  list: async (path) =>
    Object.keys(entries)
      .filter((each) => posix.dirname(each) === path)
      .map((each) => posix.basename(each))
      .reverse(),
};

/** Returns `path (name)` for each source, with the name only if it differs from the path's. */
async function resolve(...words: string[]): Promise<string[]> {
  return (await resolveCopySources(words, tree)).map(({ path, name }) =>
    name === posix.basename(path) ? path : `${path} (${name})`,
  );
}

describe("a word names", () => {
  test.each<[string, string[]]>([
    ["/", ["/"]],
    [".", ["/"]],
    ["./.", ["/"]],
    ["", ["/"]],
    ["/data", ["/data"]],
    ["data/", ["/data"]],
    ["data/.", ["/data"]],
    ["../../data/a.txt", ["/data/a.txt"]],
    ["/data/a.txt/", ["/data/a.txt"]],
    ["/data/pipe", ["/data/pipe"]],
    // The path is cleaned before any link is followed.
    ["/data/dlink/../a.txt", ["/data/a.txt"]],
    ["/*.txt/..", ["/"]],
    // The word names a link to a file or a directory.
    ["/data/link.txt", ["/data/a.txt (link.txt)"]],
    ["/data/dlink", ["/data/sub (dlink)"]],
    ["absl", ["/data/a.txt (absl)"]],
    // Links on the way are followed inside the root.
    ["/dl/dlink/s.txt", ["/data/sub/s.txt"]],
    ["/real/esc", ["/data/a.txt (esc)"]],
    ["/real/through", ["/data/b.txt (through)"]],
    // In a word without a wildcard, a backslash escapes nothing.
    ["/back\\slash", ["/back\\slash"]],
    ["/data/*.txt", ["/data/a.txt", "/data/b.txt", "/data/a.txt (link.txt)"]],
    ["/data/[^b].txt", ["/data/a.txt"]],
    ["/data/?.txt", ["/data/a.txt", "/data/b.txt"]],
    ["/data/dl*", ["/data/sub (dlink)"]],
    ["/dl/[ab]*", ["/data/a.txt", "/data/b.txt"]],
    ["/d*/.", ["/data", "/data (dl)"]],
    ["/*id", ["/.hid"]],
    ["/**/s.txt", []],
    // A wildcard before a slash matches real directories only, and one name of a path.
    ["/*/s.txt", []],
    ["/*/*/s.txt", ["/data/sub/s.txt"]],
    ["/*/f", ["/we*ird/f"]],
    ["/w?\\*ird/f", ["/we*ird/f"]],
    ["/nope*", []],
    ["/nope*/x", []],
    ["/data/a.txt/*.x", []],
  ])("%s", async (word, sources) => {
    expect(await resolve(word)).toEqual(sources);
  });

  test("sources are in the order of their words", async () => {
    expect(await resolve("/data/b.txt", "/nope*", "/data/a*")).toEqual(["/data/b.txt", "/data/a.txt"]);
  });

  test("a source has its type, and the name of its link", async () => {
    expect(await resolveCopySources(["/data/p*", "absl"], tree)).toEqual([
      { path: "/data/pipe", name: "pipe", type: "other" },
      { path: "/data/a.txt", name: "absl", type: "file" },
    ]);
  });
});

describe("a word that names no file is an error", () => {
  test.each([
    ["nope", '"/nope": not found'],
    ["/data/a.txt/x", '"/data/a.txt/x": not found'],
    ["/nope/*.x", '"/nope": not found'],
    ["/data/nope/*.x", '"/data/nope": not found'],
    ["/data/dangling", '"/data/dangling": not found'],
    ["/data/dang*", '"/data/dangling": not found'],
    ["/loop", '"/loop": too many links'],
    ["/loop/*", '"/loop": too many links'],
    ["/[a", '"/[a" is not a valid pattern: it has a character class without a closing `]`'],
  ])("%s", async (word, message) => {
    expect(await resolve(word).catch(String)).toBe(`BoughError: ${message}`);
  });

  test("the hint for a dangling link has its target", async () => {
    const error: unknown = await resolve("/data/dangling").catch((thrown: unknown) => thrown);
    expect(error).toHaveProperty("hint", "A symbolic link leads to /data/nowhere, which is missing.");
  });
});
