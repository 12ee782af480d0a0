/** Compares staged additions with a plain implementation, in which later ones replace earlier ones. */

import { expect, test } from "bun:test";
import fc from "fast-check";
import { ContextFile } from "../../src/builder/copy/staged-items.ts";
import {
  beginAddition,
  isStagedBelow,
  type Staged,
  type StagedEntry,
} from "../../src/builder/state/staged.ts";
import { EntryList } from "../../src/context/sources/entry-list.ts";

const owner = { uid: 0, gid: 0 };
const lists = [new EntryList(), new EntryList()];
const instructions = [1, 2].map((line) => ({ ...owner, line }));
const contextFiles = lists.flatMap((list) =>
  instructions.flatMap((owned) =>
    [0o644, 0o755].map((mode, index) => new ContextFile({ list, index }, mode, owned)),
  ),
);
const entry = fc.constantFrom<StagedEntry>(
  { type: "symlink", target: "t", ...owner },
  { type: "directory", mode: 0o755, isExplicit: false, ...owner },
  { type: "directory", mode: 0o700, isExplicit: true, ...owner },
  { type: "directory", mode: 0o700, isExplicit: true, ...owner, line: 3 },
  ...contextFiles,
);
const path = fc.constantFrom("/a", "/a/b", "/a/b/c", "/a/b/c/d", "/ab", "/b", "/b/c");

function stagePlainly(staged: Staged, additions: readonly [string, StagedEntry][]): Staged {
  const result = new Map(staged);
  for (const [at, added] of additions) {
    const previous = result.get(at);
    if (previous?.type === "directory" && added.type === "directory" && !added.isExplicit) continue;
    if (added.type !== "directory" && previous?.type === "directory")
      for (const below of [...result.keys()]) if (below.startsWith(`${at}/`)) result.delete(below);
    result.set(at, added);
  }
  return result;
}

/** Shows an entry with the number of its list, because lists look alike. */
function shown([path, entry]: [string, StagedEntry]): unknown[] {
  return [path, entry instanceof ContextFile ? { ...entry, list: lists.indexOf(entry.list) } : entry];
}

test("each COPY gives the same entries in the same order as the plain implementation", () => {
  const additions = fc.array(fc.tuple(path, entry), { maxLength: 8 });
  const copies = fc.array(additions, { maxLength: 6 });
  fc.assert(
    fc.property(copies, (all) => {
      let staged: Staged = new Map();
      let plain: Staged = new Map();
      for (const additions of all) {
        const addition = beginAddition(staged);
        for (const [path, entry] of additions) addition.add(path, entry);
        staged = addition.end();
        plain = stagePlainly(plain, additions);
        expect(Array.from(staged, shown)).toEqual(Array.from(plain, shown));
        for (const at of ["/a", "/a/b", "/ab", "/b", "/c"])
          expect(isStagedBelow(staged, at)).toBe([...plain.keys()].some((key) => key.startsWith(`${at}/`)));
      }
    }),
  );
});
