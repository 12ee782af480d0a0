/** Packages that are compiled in: exact versions, no scripts during the installation, and their licences. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { allLicenses, bundledPackages } from "../../scripts/licenses.ts";
import { runBough } from "../support/bough.ts";

const root = join(import.meta.dir, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const manifest = JSON.parse(read("package.json"));
const lock = read("bun.lock");
const bough = (...words: string[]) => runBough(words, { workingDirectory: "/" });

describe("bough licenses", () => {
  test("prints the text for every package that the bundler includes, as `bun scripts/licenses.ts` writes it", async () => {
    expect(read("src/cli/about/licenses.txt")).toBe(await allLicenses());
    expect((await bough("licenses")).stdout).toBe(await allLicenses());
  });

  test("lists names, versions and licences", async () => {
    const listed = JSON.parse((await bough("licenses", "-f", "json")).stdout);
    const packages = (await bundledPackages()).map(({ name, version, license }) => ({
      name,
      version,
      license,
    }));
    expect(listed).toEqual([
      ...packages,
      { name: "Bun", version: manifest.engines.bun, license: expect.any(String) },
    ]);
    expect((await bough("licenses", "-q")).stdout).toContain("ofetch 1.5.1: MIT\n");
  });
});

describe("every package", () => {
  test("is named by its exact version", () => {
    const wanted = { ...manifest.dependencies, ...manifest.devDependencies };
    const loose = Object.entries(wanted).filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(String(version)));
    expect(loose).toEqual([]);
    expect(read("bunfig.toml")).toContain("exact = true");
    expect(manifest.packageManager).toBe(`bun@${manifest.devDependencies.bun}`);
  });

  test("is pinned by its content", () => {
    const packages = [...lock.matchAll(/^ {4}"([^"]+)": \[(.*)\],$/gm)];
    expect(packages.length).toBeGreaterThan(20);
    expect(
      packages.filter(([, , entry]) => !/"sha512-[\w+/=]{88}"\]?$/.test(entry ?? "")).map(([, name]) => name),
    ).toEqual([]);
  });

  test("runs nothing when it is installed", () => {
    expect(manifest.trustedDependencies).toBeUndefined();
    expect(
      Object.keys(manifest.scripts).filter((name) => /^(pre|post)?(install|prepare|pack)/.test(name)),
    ).toEqual([]);
    const scripts = readdirSync(join(root, "scripts"), { recursive: true })
      .map((name) => join("scripts", String(name)))
      .filter((path) => !/benchmarks|example/.test(path) && !/\.(json|md)$/.test(path))
      .flatMap((path) => {
        try {
          return [{ path, text: read(path) }];
        } catch {
          return [];
        }
      });
    const installs = scripts.flatMap(({ path, text }) =>
      [...text.matchAll(/^(?!\s*(?:#|\/\/|\*|say\b)).*\b(?:bun|npm)\b[^\n]*\b(?:install|ci|add)\b.*$/gm)].map(
        ([line]) => ({ path, line }),
      ),
    );
    expect(installs.length).toBeGreaterThan(1);
    expect(
      installs.filter(
        ({ line }) => !/ignore-scripts|command -v|error:|message|throw|To install it:/.test(line),
      ),
    ).toEqual([]);
  });
});
