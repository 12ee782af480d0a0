/**
 * The licences of the executable's parts: of bundled packages, read from node_modules, and of the Bun runtime. As a program, it
 * writes them after bough's own licence to the file that `bough licenses` prints.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
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
  const manifest = readManifest(absolute);
  const { name, version, license } = manifest;
  const text = licenseIn(absolute) ?? licenseBeside(absolute, manifest);
  if (text === undefined || license === undefined) throw new Error(`${name} ${version} has no licence`);
  return { name, version, license, text };
}

function licenseIn(directory: string): string | undefined {
  const file = readdirSync(directory).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
  return file === undefined ? undefined : readFileSync(join(directory, file), "utf8");
}

/** Returns the licence of a package of the same repository: its authors have left it out of one of them. */
function licenseBeside(directory: string, { license, repository }: Manifest): string | undefined {
  const others = readdirSync(dirname(directory)).map((entry) => join(dirname(directory), entry));
  const same = others.find((other) => {
    if (repository?.url === undefined || !existsSync(join(other, "package.json"))) return false;
    const manifest = readManifest(other);
    return (
      manifest.repository?.url === repository.url &&
      manifest.license === license &&
      licenseIn(other) !== undefined
    );
  });
  return same === undefined ? undefined : licenseIn(same);
}

interface Manifest {
  name: string;
  version: string;
  license?: string;
  repository?: { url?: string };
}

function readManifest(directory: string): Manifest {
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
