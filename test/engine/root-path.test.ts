import { afterAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { resolveInRoot } from "../../src/engine/sandbox/root/root-path.ts";
import { runs } from "../support/random.ts";

const scratch = mkdtempSync(join(tmpdir(), "bough-root-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe("a path is resolved with the image's root as its /:", () => {
  const root = join(scratch, "table");
  mkdirSync(join(root, "d/e"), { recursive: true });
  writeFileSync(join(root, "d/f"), "");
  symlinkSync("d", join(root, "relative"));
  symlinkSync("/d/e", join(root, "absolute"));
  symlinkSync("../../../d/f", join(root, "d/e/climbing"));
  symlinkSync(scratch, join(root, "host"));

  test.each([
    ["/", "/"],
    ["//d/./e/", "/d/e"],
    ["/relative/f", "/d/f"],
    ["/absolute/..", "/d"],
    ["/absolute/climbing", "/d/f"],
    ["/../..", "/"],
    ["/missing/../d", "/d"],
    ["/missing/x", "/missing/x"],
    ["/d/f/x", "/d/f/x"],
    ["/host/table", `${scratch}/table`],
  ])("%s leads to %s", (path, inside) => {
    const found = resolveInRoot(root, path, { followLast: true });
    expect(found.inside).toBe(inside);
    expect(found.path).toBe(inside === "/" ? root : join(root, inside));
    expect(found.stats !== undefined).toBe(existsSync(join(root, inside)));
  });

  test("a link at the end of a path is not followed without followLast", () => {
    const found = resolveInRoot(root, "/relative", { followLast: false });
    expect(found.inside).toBe("/relative");
    expect(found.stats?.isSymbolicLink()).toBe(true);
  });
});

test("no links lead out of the root", () => {
  const component = fc.constantFrom("a", "b", "c", "..", ".");
  const path = fc.array(component, { minLength: 1, maxLength: 5 }).map((components) => components.join("/"));
  const target = fc.tuple(fc.boolean(), path).map(([isAbsolute, text]) => (isAbsolute ? `/${text}` : text));
  const entry = fc.record({ path: path, target: fc.option(target) });
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 8 }), path, (entries, wanted) => {
      const root = mkdtempSync(join(scratch, "tree-"));
      for (const made of entries) make(root, join("/", made.path), made.target);
      let found: ReturnType<typeof resolveInRoot>;
      try {
        found = resolveInRoot(root, wanted, { followLast: true });
      } catch (error) {
        expect(String(error)).toContain("too many symbolic links");
        return;
      }
      expect(`${found.path}/`.startsWith(`${root}/`)).toBe(true);
      // An existing result has no links in its path, so opening it cannot leave the root either.
      if (found.stats !== undefined) expect(realpathSync(found.path)).toBe(found.path);
      rmSync(root, { recursive: true, force: true });
    }),
    { numRuns: runs(300) },
  );
});

/** Makes a link if there is a target, else a directory; nothing if a link would have to be followed. */
function make(root: string, path: string, target: string | null): void {
  const whole = join(root, path);
  if (whole === root || whole === `${root}/`) return;
  const parents = dirname(whole)
    .slice(root.length + 1)
    .split("/")
    .filter((name) => name !== "");
  for (let depth = 1; depth <= parents.length; depth++) {
    const parent = join(root, ...parents.slice(0, depth));
    const stats = lstatSync(parent, { throwIfNoEntry: false });
    if (stats !== undefined && !stats.isDirectory()) return;
  }
  if (lstatSync(whole, { throwIfNoEntry: false }) !== undefined) return;
  mkdirSync(dirname(whole), { recursive: true });
  if (target === null) mkdirSync(whole);
  else symlinkSync(target, whole);
}
