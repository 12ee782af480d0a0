import { expect, test } from "bun:test";
import { PathResolution } from "../../src/paths/path-resolution.ts";

/** Links by their place; everything else is a directory. */
type Links = Readonly<Record<string, string>>;

/** Returns the place that a path leads to, or the message of the error. */
function resolve(path: string, links: Links, { maxLinks, from, isBounded = false }: Settings = {}): string {
  const refuse = {
    ...(maxLinks === undefined ? {} : { maxLinks }),
    ...(isBounded ? { aboveRoot: () => new Error("above the root") } : {}),
    tooManyLinks: () => new Error("too many links"),
  };
  try {
    const resolution = new PathResolution(path, refuse, from);
    for (let name = resolution.next(); name !== undefined; name = resolution.next()) {
      const target = links[`/${[...resolution.reached, name].join("/")}`];
      if (target === undefined) resolution.enter(name);
      else resolution.follow(target);
    }
    return `/${resolution.reached.join("/")}`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

interface Settings {
  maxLinks?: number;
  from?: readonly string[];
  /** True if `..` may not lead above the root. */
  isBounded?: boolean;
}

const chain = (length: number): Links =>
  Object.fromEntries(Array.from({ length }, (_, at) => [`/${at}`, at + 1 === length ? "end" : `${at + 1}`]));

const cases: readonly [title: string, path: string, links: Links, expected: string, settings?: Settings][] = [
  ["no link", "/a/b", {}, "/a/b"],
  ["empty names and dots", "//a/./b//", {}, "/a/b"],
  ["the root", "/", {}, "/"],
  ["`..` goes back", "/a/../b", {}, "/b"],
  ["`..` of the root is the root", "/../../a", {}, "/a"],
  ["`..` of the root where that is refused", "/a/../../b", {}, "above the root", { isBounded: true }],
  ["a relative link", "/a/link/c", { "/a/link": "../b" }, "/b/c"],
  ["an absolute link", "/a/link/c", { "/a/link": "/b" }, "/b/c"],
  ["a link out of the root", "/link/c", { "/link": "../../../etc" }, "/etc/c"],
  [
    "a link out of the root where that is refused",
    "/link",
    { "/link": ".." },
    "above the root",
    { isBounded: true },
  ],
  ["`..` after a link is that of the target", "/link/../c", { "/link": "/a/b" }, "/a/c"],
  ["an empty target is the link's directory", "/a/link/c", { "/a/link": "" }, "/a/c"],
  ["links to links", "/0/x", chain(255), "/end/x"],
  ["one link too many", "/0/x", chain(256), "too many links"],
  ["a loop", "/a", { "/a": "b", "/b": "a" }, "too many links"],
  ["a lower limit", "/0", chain(3), "too many links", { maxLinks: 2 }],
  ["from a directory", "../c", {}, "/a/c", { from: ["a", "b"] }],
  ["an absolute path has no directory", "/c", {}, "/c", { from: ["a", "b"] }],
];

for (const [title, path, links, expected, settings] of cases)
  test(title, () => expect(resolve(path, links, settings)).toBe(expected));
