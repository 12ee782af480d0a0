/**
 * The licences of the executable's parts: of bundled packages, read from node_modules, and of the Bun runtime. As a program, it
 * writes them after bough's own licence to the file that `bough licenses` prints.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runScript } from "./run-script.ts";

export interface BundledPackage {
  name: string;
  version: string;
  /** An SPDX expression, as the package declares it. */
  license: string;
  /** The text that the licence asks to be passed on. */
  text: string;
}

const root = join(import.meta.dir, "..");

/** Returns the packages with a file in the bundle of `src/main.ts`, by name. Rejects if one has no licence. */
export async function bundledPackages(): Promise<BundledPackage[]> {
  const { metafile } = await Bun.build({
    entrypoints: [join(root, "src/main.ts")],
    root,
    target: "bun",
    splitting: true,
    metafile: true,
  });
  const directories = new Set(
    Object.keys(metafile?.inputs ?? {}).flatMap(
      (path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? [],
    ),
  );
  return [...directories].map(readPackage).sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Returns a Markdown document: the packages with their licences, then the runtime and the libraries linked into it. */
export function renderLicenses(packages: readonly BundledPackage[], runtime: string): string {
  const sections = packages.map(
    ({ name, version, license, text }) =>
      `## ${name} ${version}\n\n${license}\n\n\`\`\`\`text\n${text.trim()}\n\`\`\`\`\n`,
  );
  return [
    "# Third-party licences\n",
    "bough itself is under the MIT licence in the file LICENSE. The executable holds these packages too:\n",
    ...sections,
    runtime,
  ].join("\n");
}

/** Returns the documentation of the pinned Bun about its licence and those of libraries linked into it. */
export function runtimeLicenses(): string {
  const { version } = readManifest(join(root, "node_modules/bun-types"));
  const page = readFileSync(join(root, "node_modules/bun-types/docs/project/license.mdx"), "utf8");
  const body = page.replace(/^---\n.*?\n---\n/s, "").replace(/^#/gm, "##");
  return `## Bun ${version}, the runtime\n\n${body.trim()}\n`;
}

function readPackage(directory: string): BundledPackage {
  const absolute = join(root, directory.slice(directory.indexOf("node_modules")));
  const { name, version, license } = readManifest(absolute);
  const file = readdirSync(absolute).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
  if (file === undefined || license === undefined) throw new Error(`${name} ${version} has no licence`);
  return { name, version, license, text: readFileSync(join(absolute, file), "utf8") };
}

function readManifest(directory: string): { name: string; version: string; license?: string } {
  const path = join(directory, "package.json");
  if (!existsSync(path)) throw new Error(`${path} is missing: run \`bun install\``);
  return JSON.parse(readFileSync(path, "utf8"));
}

/** Returns the output of `bough licenses`. */
export async function allLicenses(): Promise<string> {
  const own = readFileSync(join(root, "LICENSE"), "utf8");
  return `# bough\n\n${own}\n${renderLicenses(await bundledPackages(), runtimeLicenses())}`;
}

if (import.meta.main) {
  await runScript(async () => writeFileSync(join(root, "src/cli/about/licenses.txt"), await allLicenses()));
}
