/** A destination that is a link leads to a path inside the root, to which BuildKit writes. */
import { expect, test } from "bun:test";
import { followLinks } from "../../../src/builder/copy/destination.ts";
import type { Staged } from "../../../src/builder/state/staged.ts";

const links: Record<string, string> = {
  "/absolute": "/real/f",
  "/relative": "real/f",
  "/up": "../../../real/f",
  "/dangling": "/nowhere/f",
  "/chain": "absolute",
  "/circle": "circle",
  "/way": "/real/deep",
  "/real/deep/back": "../f",
  "/over": "/real/over",
};
const link = { type: "symlink", uid: 0, gid: 0 } as const;
const staged: Staged = new Map([
  ["/staged", { ...link, target: "absolute" }],
  ["/staged-way", { ...link, target: "way" }],
  ["/over", { type: "directory", mode: 0o755, isExplicit: false, uid: 0, gid: 0 }],
]);

test.each([
  ["/plain", "/plain"],
  ["/absolute", "/real/f"],
  ["/relative", "/real/f"],
  ["/up", "/real/f"],
  ["/dangling", "/nowhere/f"],
  ["/chain", "/real/f"],
  ["/staged", "/real/f"],
  ["/real/deep/back", "/real/f"],
  // A staged directory replaces the link.
  ["/over", "/over"],
  // The link to the directory is followed when the file is put in place.
  ["/way/f", "/way/f"],
  // A staged link may be put in place after the file.
  ["/staged-way/f", "/real/deep/f"],
])("%s leads to %s", async (path, end) => {
  expect(await followLinks(path, staged, async (at) => links[at])).toBe(end);
});

test("a relative target is resolved from the link's real directory", async () => {
  const through = async (at: string) => (at === "/way/back" ? "../f" : links[at]);
  expect(await followLinks("/way/back", staged, through)).toBe("/real/f");
});

test("circular links are refused", async () => {
  expect(await followLinks("/circle", staged, async (at) => links[at]).catch(String)).toBe(
    "BoughError: /circle: too many links",
  );
});
