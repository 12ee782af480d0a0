import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { openBuildContext } from "../../src/context/build-context.ts";
import { localFileSystem } from "../../src/context/file-system/file-system.ts";
import { ignoreRules, parseIgnoreFile } from "../../src/context/patterns/ignore.ts";
import type { RuleInheritance } from "../../src/context/patterns/rules.ts";
import { resolveSources } from "../../src/context/sources/sources.ts";
import { runs } from "../support/random.ts";
import { isIgnored } from "./reference-matcher.ts";

const root = mkdtempSync(join(tmpdir(), "bough-walk-"));
afterAll(() => rmSync(root, { recursive: true }));

const name = fc.constantFrom("a", "b", "ab", "ba", "c.d");
/** The files and empty directories (with a final slash) of a tree. No path is both a file and a directory. */
const tree = fc
  .uniqueArray(fc.tuple(fc.array(name, { minLength: 1, maxLength: 4 }), fc.constantFrom("", "", "/")), {
    maxLength: 12,
    selector: ([names]) => names.join("/"),
  })
  .map((paths) => {
    const all = paths.map(([names, end]) => names.join("/") + end);
    return all.filter(
      (path) => !all.some((other) => other.startsWith(`${path.replace(/\/$/, "")}/`) && other !== path),
    );
  });
const pattern = fc
  .array(fc.constantFrom("a", "b", "ab", "*", "**", "?", "c.d", "[^b]"), { minLength: 1, maxLength: 4 })
  .chain((parts) => fc.constantFrom(parts.join("/"), parts.join(""), `**/${parts.join("/")}`));
const lines = fc.array(
  fc.tuple(fc.constantFrom("", "!"), pattern).map((parts) => parts.join("")),
  { maxLength: 5 },
);

test.each(["every", "effective"] as const)(
  "a walk keeps exactly the paths that the reference matcher keeps, with their parents, if %s rule counts below",
  async (inheritance) => {
    let directories = 0;
    await fc.assert(
      fc.asyncProperty(tree, lines, async (tree, lines) => {
        const directory = join(root, `${inheritance}-${directories++}`);
        mkdirSync(directory);
        for (const path of tree) {
          mkdirSync(dirname(join(directory, `${path}x`)), { recursive: true });
          if (!path.endsWith("/")) writeFileSync(join(directory, path), "");
        }
        const { matches } = await resolveSources({
          context: await openBuildContext(directory, "/"),
          ignore: ignoreRules(parseIgnoreFile(lines.join("\n"), ".dockerignore"), {
            ...{ defaultExcludes: false, inheritance },
          }),
          sources: ["."],
          files: localFileSystem,
        });
        const paths = matches.flatMap(({ entries }) =>
          [...entries].slice(1).map((entry) => entry.contextPath),
        );
        expect(paths).toEqual(referenceWalk(tree, lines, inheritance));
      }),
      { numRuns: runs(300) },
    );
  },
);

function referenceWalk(
  tree: readonly string[],
  lines: readonly string[],
  inheritance: RuleInheritance,
): string[] {
  const kept = new Set<string>();
  for (const path of tree) {
    const names = path.replace(/\/$/, "").split("/");
    for (let length = names.length; length > 0; length--) {
      const above = names.slice(0, length).join("/");
      if (isIgnored(lines, above, inheritance)) continue;
      for (let at = 1; at <= length; at++) kept.add(names.slice(0, at).join("/"));
    }
  }
  return [...kept].sort((a, b) => {
    const [one, other] = [a.split("/"), b.split("/")];
    const at = one.findIndex((name, index) => name !== other[index]);
    if (at < 0) return one.length - other.length;
    return (one[at] ?? "") < (other[at] ?? "") ? -1 : 1;
  });
}
