/** A build without scopes does not load their modules. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const source = join(import.meta.dir, "../../src");

/** Returns the modules that a module imports statically, directly or through others. */
function loadedWith(module: string, loaded: Set<string> = new Set()): Set<string> {
  if (loaded.has(module)) return loaded;
  loaded.add(module);
  if (!module.startsWith("/")) return loaded;
  const imports = readFileSync(module, "utf8").matchAll(
    /^(?:import|export) (?!type\b)[^"';]*?from "([^"]+)"/gm,
  );
  for (const [, name = ""] of imports)
    loadedWith(name.startsWith(".") ? join(dirname(module), name) : name, loaded);
  return loaded;
}

const relevant = /^builder\/scopes\/|scope-options|automatic-scopes|^node:crypto$/;

test.each(["start.ts", "cli/builds/build.ts", "cli/builds/run-build.ts"])(
  "%s imports no module of scopes",
  (entry) => {
    const loaded = [...loadedWith(join(source, entry))].map((module) => module.replace(`${source}/`, ""));
    expect(loaded.length).toBeGreaterThan(2);
    expect(loaded.filter((module) => relevant.test(module))).toEqual([]);
  },
);

test("reading scopes does not load node:crypto, which only signatures need", () => {
  const loaded = loadedWith(join(source, "builder/scopes/open-scopes.ts"));
  loadedWith(join(source, "builder/scopes/shared-caches.ts"), loaded);
  expect(loaded.has(join(source, "builder/scopes/index-file.ts"))).toBe(true);
  expect(loaded.has("node:crypto")).toBe(false);
});
