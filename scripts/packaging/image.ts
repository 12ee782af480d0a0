/**
 * Makes dist/image from the checked-out commit: an OCI image layout for x64 and arm64, with bough on glibc and
 * certificates from Debian. With --engine, makes dist/image-engine: an image that also has all that the embedded engine needs.
 * Needs no daemon and no container: it writes the layers as archives.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { formatBytes } from "../../src/terminal/quantity.ts";
import { bundledPackages, renderLicenses, runtimeLicenses } from "../licenses.ts";
import { runScript } from "../run-script.ts";
import type { ArchiveEntry } from "./archive-entry.ts";
import { baseFiles, certificates, home, userId, withParents, workingDirectory } from "./base-files.ts";
import { readSource, type Source } from "./commit.ts";
import { compile } from "./compile.ts";
import { type DebianSources, openDebianSources } from "./debian-packages.ts";
import { engineFiles, enginePackages, unneeded } from "./engine-files.ts";
import { type PlatformImage, writeImageLayout } from "./image-layout.ts";
import { type Target, targets } from "./targets.ts";

const platforms = [
  { target: "linux-x64", architecture: "amd64", triplet: "x86_64-linux-gnu" },
  { target: "linux-arm64", architecture: "arm64", triplet: "aarch64-linux-gnu" },
] as const;

const root = join(import.meta.dir, "../..");
const forEngine = process.argv.includes("--engine");
const out = join(root, forEngine ? "dist/image-engine" : "dist/image");

async function main(): Promise<void> {
  const source = readSource(root);
  const licenses = renderLicenses(await bundledPackages(), runtimeLicenses());
  const work = mkdtempSync(join(tmpdir(), "bough-image-"));
  try {
    const sources = openDebianSources(
      platforms.map(({ architecture }) => architecture),
      work,
    );
    const images = platforms.map((platform): PlatformImage => {
      const { architecture } = platform;
      const { content } = compile(root, targetOf(platform.target), source, work);
      say(`${architecture}: bough ${formatBytes(content.byteLength)}`);
      const base = forEngine ? engineBase(sources, platform) : plainBase(sources, platform);
      return { architecture, layers: [base, programFiles(content, licenses)] };
    });
    rmSync(out, { recursive: true, force: true });
    const tag = forEngine ? `${source.version}-engine` : source.version;
    const digest = writeImageLayout(out, images, {
      tag,
      created: source.date,
      config: describe(source),
    });
    say(`${relative(root, out)}:${tag} ${digest}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

type Platform = (typeof platforms)[number];

function plainBase(sources: DebianSources, { architecture, triplet, target }: Platform): ArchiveEntry[] {
  const [glibc, certificates] = sources.fetch([`libc6:${architecture}`, "ca-certificates"]).values();
  if (glibc === undefined || certificates === undefined) throw new Error("the packages were not fetched");
  return baseFiles({ glibc, certificates }, triplet, targetOf(target).format.loader ?? "");
}

function engineBase(sources: DebianSources, { architecture }: Platform): ArchiveEntry[] {
  const names = sources.withDependencies(enginePackages, architecture, unneeded);
  return engineFiles([...sources.fetch(names).values()]);
}

function programFiles(executable: Uint8Array, licenses: string): ArchiveEntry[] {
  const license = readFileSync(join(root, "LICENSE"), "utf8");
  return withParents([
    { type: "file", path: "usr/local/bin/bough", mode: 0o755, content: executable },
    { type: "file", path: "usr/share/doc/bough/LICENSE", mode: 0o644, content: license },
    { type: "file", path: "usr/share/doc/bough/THIRD-PARTY-LICENSES.md", mode: 0o644, content: licenses },
  ]);
}

function describe({ version, commit, date }: Source): Record<string, unknown> {
  const labels = {
    title: "bough",
    description: "Builds Dockerfiles on an image service, layer by cached layer.",
    version,
    revision: commit,
    created: date.toISOString(),
    licenses: "MIT",
  };
  return {
    User: `${userId}:${userId}`,
    Env: [
      "PATH=/usr/local/bin:/usr/bin:/bin",
      `HOME=${home}`,
      // Bun has its own certificates; with this, it also accepts those that users add to the image.
      `NODE_EXTRA_CA_CERTS=${certificates}`,
    ],
    WorkingDir: workingDirectory,
    // Layers can't be on the container's own overlay.
    ...(forEngine ? { Volumes: { [home]: {} } } : {}),
    Entrypoint: ["bough"],
    Cmd: ["--help"],
    Labels: Object.fromEntries(
      Object.entries(labels).map(([name, value]) => [`org.opencontainers.image.${name}`, value]),
    ),
  };
}

function targetOf(name: string): Target {
  const target = targets.find((candidate) => candidate.name === name);
  if (target === undefined) throw new Error(`there is no target ${name}`);
  return target;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

await runScript(main);
