/** Modules that are loaded at the start: those that the program and a command import by statements. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const source = join(import.meta.dir, "../../src");
const transpiler = new Bun.Transpiler({ loader: "ts" });

/** Files below `src`, and packages by name. Imports of types and calls of `import()` do not count: they load nothing. */
function loadedBy(...entries: string[]): string[] {
  const found = new Set<string>();
  const waiting = entries.map((entry) => join(source, entry));
  for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
    const name = relative(source, file);
    if (found.has(name)) continue;
    found.add(name);
    if (!file.endsWith(".ts")) continue;
    for (const { path, kind } of transpiler.scanImports(readFileSync(file, "utf8"))) {
      if (kind !== "import-statement") continue;
      if (path.startsWith(".")) waiting.push(join(dirname(file), path));
      else found.add(path);
    }
  }
  return [...found].sort();
}

describe.each([
  ["bough -h", ["start.ts"]],
  [
    "bough build",
    ["start.ts", "cli/command-line/run-loaded.ts", "cli/builds/build.ts", "cli/builds/run-build.ts"],
  ],
  ["bough mcp -h", ["start.ts", "cli/mcp/mcp.ts"]],
])("%s", (_, entries) => {
  const loaded = loadedBy(...entries);

  test("loads nothing of the Model Context Protocol", () => {
    expect(loaded).toContain("cli/program/commands.ts");
    expect(loaded.filter((name) => /modelcontextprotocol|^zod|^cli\/mcp\/(?!mcp\.ts)/.test(name))).toEqual(
      [],
    );
  });

  test("loads nothing of the manual", () => {
    expect(loaded.filter((name) => name.startsWith("cli/help/"))).toEqual([]);
  });

  test("loads nothing that measures a build", () => {
    expect(loaded.filter((name) => /^terminal\/timeline|measure-layers/.test(name))).toEqual([]);
  });
});

test("bough build loads nothing that only an uncached step, another source or a failure needs", () => {
  const loaded = loadedBy("start.ts", "cli/builds/build.ts", "cli/builds/run-build.ts");
  expect(loaded).toContain("builder/steps/find-or-make.ts");
  const needless =
    /^(bun:ffi|node:url|engine\/|cli\/builds\/(failed-result|lock)|image\/image-writer|builder\/(bases\/remote-base|commands\/run-for-layer|operations\/(operation|ask-image)|remote-files\/(download|fetch-url)))/;
  expect(loaded.filter((name) => needless.test(name))).toEqual([]);
});

test("bough run loads nothing that only an import needs", () => {
  const loaded = loadedBy("start.ts", "cli/run/run.ts");
  expect(loaded).toContain("cli/run/pull.ts");
  expect(loaded.filter((name) => /^cli\/images\/import/.test(name))).toEqual([]);
});

test("bough bake loads nothing that only other files, content keys, tags of git or a check need", () => {
  const loaded = loadedBy(
    "start.ts",
    ...["bake.ts", "read-bake.ts", "entitlements.ts", "remote/bake-arguments.ts", "build-targets.ts"].map(
      (name) => `cli/bake/${name}`,
    ),
  );
  expect(loaded).toContain("cli/bake/sets/build-all.ts");
  const needless =
    /^(yaml$|hcl\/(?!source)|check\/check\.|builder\/keys\/|registry\/(client|registry-store)|cli\/bake\/(compose|call-targets|keys\/(?!key-use)|sets\/(tagged-targets|variable-files))|cli\/builds\/tags\/)/;
  expect(loaded.filter((name) => needless.test(name))).toEqual([]);
});

test("the engine in this process loads nothing that only a command or a request needs", () => {
  const loaded = loadedBy("engine/engine.ts", "engine/service/engine-service.ts");
  expect(loaded).toContain("engine/service/operations.ts");
  const needless =
    /^engine\/(router|routes\/|instances\/(start-instance|perform|spec)|sandbox\/sandbox\.ts)|^service\/(client|http\/transport)/;
  expect(loaded.filter((name) => needless.test(name))).toEqual([]);
});

test("bough --version loads nothing but the version", () => {
  expect(loadedBy("main.ts")).toEqual(["../package.json", "main.ts", "version.ts"]);
});

test("bough build -h loads no module of Node.js: node:fs alone takes a quarter of the time that Bun needs to start", () => {
  expect(loadedBy("start.ts", "cli/builds/build.ts").filter((name) => name.startsWith("node:"))).toEqual([]);
});

test("bough mcp loads the Model Context Protocol", () => {
  expect(loadedBy("cli/mcp/serve.ts")).toEqual(
    expect.arrayContaining(["@modelcontextprotocol/sdk/server/mcp.js", "zod", "cli/mcp/tools/build.ts"]),
  );
});
