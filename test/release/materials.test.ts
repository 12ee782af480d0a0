/** The source of a release, and the packages in it. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bundledPackages, renderLicenses, runtimeLicenses } from "../../scripts/licenses.ts";
import { materialsOf, renderBillOfMaterials } from "../../scripts/packaging/bill-of-materials.ts";
import { readSource } from "../../scripts/packaging/commit.ts";
import { runProgram } from "../../scripts/packaging/run-program.ts";
import { lockedPackage } from "../../scripts/packaging/runtime.ts";
import { targets } from "../../scripts/packaging/targets.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

const root = join(import.meta.dir, "../..");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const bunVersion = manifest.packageManager.replace("bun@", "");

describe("the runtime of every target is pinned", () => {
  test.each(targets.map(({ name, runtimePackage }) => [name, runtimePackage]))("%s", (_, name) => {
    const { version, integrity } = lockedPackage(root, name);
    expect(version).toBe(bunVersion);
    expect(Buffer.from(integrity.replace(/^sha512-/, ""), "base64").byteLength).toBe(64);
  });

  test("a runtime that is not pinned is refused", () => {
    expect(() => lockedPackage(root, "@oven/bun-amiga")).toThrow("does not pin the package @oven/bun-amiga");
  });
});

test("every dependency is in the bundle, with a suitable licence and its text", async () => {
  const packages = await bundledPackages();
  expect(packages.map(({ name }) => name)).toEqual(
    expect.arrayContaining(Object.keys(manifest.dependencies)),
  );
  for (const { license, text } of packages) {
    expect(license).toMatch(/^(MIT|ISC|BSD-[23]-Clause|Apache-2\.0|BlueOak-1\.0\.0)$/);
    // Blue Oak's licence names no holders: its text is to be passed on.
    expect(text).toContain(license === "BlueOak-1.0.0" ? "Blue Oak Model License" : "Copyright");
  }
  const document = renderLicenses(packages, runtimeLicenses());
  for (const { name, version } of packages) expect(document).toContain(`\n## ${name} ${version}\n`);
  expect(document).toContain(`\n## Bun ${bunVersion}, the runtime\n`);
  expect(document).toContain("JavaScriptCore");
});

test("the bill of materials names every package with its checksum, and the commit", async () => {
  const source = { version: "1.2.3", commit: "c0ffee", date: new Date("2026-01-02T03:04:05Z") };
  const packages = await bundledPackages();
  const materials = materialsOf(packages, ["@oven/bun-linux-x64"], (name) => lockedPackage(root, name));
  const document = JSON.parse(renderBillOfMaterials(source, materials));
  expect(document).toMatchObject({
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    metadata: {
      timestamp: "2026-01-02T03:04:05.000Z",
      component: {
        name: "bough",
        version: "1.2.3",
        properties: [{ name: "bough:commit", value: "c0ffee" }],
      },
    },
  });
  expect(document.components).toHaveLength(packages.length + 1);
  for (const { purl, hashes } of document.components) {
    expect(purl).toMatch(/^pkg:npm\/(%40[\w.-]+\/)?[\w.-]+@\d[\w.]+$/);
    expect(hashes[0].content).toMatch(/^[0-9a-f]{128}$/);
  }
  expect(document.dependencies[0].dependsOn).toEqual(
    document.components.map(({ purl }: { purl: string }) => purl),
  );
});

test("a release is made from a commit, and refused if tracked files differ from it", () => {
  const directory = temporaryDirectory();
  writeFiles(directory, { "package.json": '{"version": "1.2.3"}' });
  const git = (...words: string[]) => {
    const identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"];
    return runProgram(["git", ...identity, ...words], { cwd: directory });
  };
  git("init", "--quiet");
  git("add", ".");
  git("commit", "--quiet", "--message", "one", "--date", "2001-01-01T00:00:00Z");
  const source = readSource(directory);
  expect(source).toMatchObject({ version: "1.2.3", commit: git("rev-parse", "HEAD").trim() });
  expect(source.date.getTime() / 1000).toBe(Number(git("log", "-1", "--format=%ct")));
  writeFiles(directory, { "notes.txt": "not part of anything" });
  expect(readSource(directory)).toEqual(source);
  writeFiles(directory, { "package.json": '{"version": "1.2.4"}' });
  expect(() => readSource(directory)).toThrow("uncommitted changes:\n M package.json");
});
