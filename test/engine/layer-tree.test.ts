/** A tree of layers that remembers what the tree below it has entered and listed. */
import { expect, test } from "bun:test";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { LayerTree } from "../../src/engine/sandbox/root/layer-tree.ts";
import { makeWhiteout, markOpaque } from "../../src/engine/system/xattrs.ts";
import { temporaryDirectory } from "../support/bough.ts";

const directories = ["a", "a/b", "a/b/c", "d"];
const kinds = ["directory", "opaque", "file", "whiteout"] as const;
type Change = readonly [path: string, kind: (typeof kinds)[number]];

/** What a layer does to paths, the upper ones first; what can't be, below a file for example, is left out. */
const layer = fc
  .uniqueArray(
    fc.tuple(fc.constantFrom(...directories, "a/f", "a/b/f", "d/f", "d/g"), fc.constantFrom(...kinds)),
    { selector: ([path]) => path, maxLength: 5 },
  )
  .map((changes) => changes.toSorted(([one], [other]) => one.length - other.length));

test("a tree that remembers is that of its layers", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(layer, fc.subarray([...directories, "", "x"])), { minLength: 2, maxLength: 8 }),
      (steps) => {
        const root = temporaryDirectory();
        let parts: { layer: number; path: string }[] = [];
        let below: LayerTree | undefined;
        const again: (() => void)[] = [];
        for (const [at, [changes, asked]] of steps.entries()) {
          parts = [{ layer: at, path: writeLayer(join(root, String(at)), changes) }, ...parts];
          const tree = new LayerTree(parts, false, { below });
          below = tree;
          const layers = parts;
          const plain = () => new LayerTree(layers, false);
          for (const path of asked) {
            const [found, expected] = [tree.enterPath(path), plain().enterPath(path)];
            expect(found).toEqual([...expected]);
            again.push(() => expect(namesOf(tree, found)).toEqual(namesOf(plain(), expected)));
            // Looked for before and after the directory is listed.
            for (const lists of [true, false]) {
              for (const name of ["a", "b", "f", "g"])
                expect(tree.find(found, name)?.path).toBe(plain().find(expected, name)?.path as string);
              if (lists) expect(namesOf(tree, found)).toEqual(namesOf(plain(), expected));
            }
          }
        }
        // What a later tree has taken from an earlier one is not its own.
        for (const check of again) check();
        rmSync(root, { recursive: true });
      },
    ),
  );
});

function namesOf(tree: LayerTree, directory: ReturnType<LayerTree["enterPath"]>): string[] {
  return tree
    .list(directory)
    .map(({ name, type, path, layer }) => `${name} ${type} ${path} ${layer}`)
    .toSorted();
}

function writeLayer(path: string, changes: readonly Change[]): string {
  mkdirSync(path);
  for (const [name, kind] of changes) {
    const place = join(path, name);
    try {
      if (kind === "file") writeFileSync(place, "", { flag: "wx" });
      else if (kind === "whiteout") makeWhiteout(place);
      else mkdirSync(place, { recursive: true });
      if (kind === "opaque") markOpaque(place, false);
    } catch {
      // Something else is above it, or there.
    }
  }
  return path;
}
