/**
 * Makes dist/image from the checked-out commit: an OCI image layout for x64 and arm64, with bough on glibc and
 * certificates from Debian. Needs no daemon and no container: it writes the layers as archives.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { formatBytes } from "../../src/terminal/quantity.ts";
import { bundledPackages, renderLicenses, runtimeLicenses } from "../licenses.ts";
import { runScript } from "../run-script.ts";
import type { ArchiveEntry } from "./archive-entry.ts";
import { baseFiles, certificates, home, userId, withParents, workingDirectory } from "./base-files.ts";
import { readSource, type Source } from "./commit.ts";
import { compile } from "./compile.ts";
import { fetchDebianPackages, type UnpackedPackage } from "./debian-packages.ts";
import { type PlatformImage, writeImageLayout } from "./image-layout.ts";
import { type Target, targets } from "./targets.ts";

const platforms = [
  { target: "linux-x64", architecture: "amd64", triplet: "x86_64-linux-gnu" },
  { target: "linux-arm64", architecture: "arm64", triplet: "aarch64-linux-gnu" },
] as const;

const root = join(import.meta.dir, "../..");
const out = join(root, "dist/image");

async function main(): Promise<void> {
  const source = readSource(root);
  const licenses = renderLicenses(await bundledPackages(), runtimeLicenses());
  const work = mkdtempSync(join(tmpdir(), "bough-image-"));
  try {
    const wanted = ["ca-certificates", ...platforms.map(({ architecture }) => `libc6:${architecture}`)];
    const packages = fetchDebianPackages(wanted, work);
    const images = platforms.map((platform): PlatformImage => {
      const { architecture, triplet } = platform;
      const target = targetOf(platform.target);
      const glibc = packageOf(packages, `libc6:${architecture}`);
      const base = { glibc, certificates: packageOf(packages, "ca-certificates") };
      const { content } = compile(root, target, source, work);
      say(`${architecture}: bough ${formatBytes(content.byteLength)} on glibc ${glibc.version}`);
      const layers = [baseFiles(base, triplet, target.format.loader ?? ""), programFiles(content, licenses)];
      return { architecture, layers };
    });
    rmSync(out, { recursive: true, force: true });
    const digest = writeImageLayout(out, images, {
      tag: source.version,
      created: source.date,
      config: describe(source),
    });
    say(`dist/image:${source.version} ${digest}`);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
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

function packageOf(packages: ReadonlyMap<string, UnpackedPackage>, name: string): UnpackedPackage {
  const found = packages.get(name);
  if (found === undefined) throw new Error(`the package ${name} was not fetched`);
  return found;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

await runScript(main);
