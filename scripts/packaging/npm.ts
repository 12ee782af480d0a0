/** npm packages: one for each system with its executable, and one that depends on them optionally and runs the fitting one. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ArchiveEntry } from "./archive-entry.ts";
import type { Source } from "./commit.ts";
import { writeTar } from "./tar.ts";
import { executableName, type Target } from "./targets.ts";

/** The variable with the name of the npm package, such as `bough` or `@team/bough`. */
export const npmNameVariable = "BOUGH_NPM_NAME";

export interface NpmPackage {
  /** The name of its file, as `npm pack` makes it. */
  file: string;
  content: Uint8Array;
}

type Compress = (content: Uint8Array<ArrayBuffer>) => Uint8Array;

/** Returns the name of the main package. Throws if npm would refuse it. */
export function readNpmName(environment: Readonly<Record<string, string | undefined>>): string {
  const name = environment[npmNameVariable] ?? "bough";
  if (/^(@[a-z0-9-][a-z0-9-._]*\/)?[a-z0-9-][a-z0-9-._]*$/.test(name) && name.length <= 100) return name;
  throw new Error(`${npmNameVariable}: npm has no packages of the name ${JSON.stringify(name)}`);
}

/** Returns the package of a target. `files`: those of its archive. */
export function platformPackage(
  target: Target,
  { source, name, files }: { source: Source; name: string; files: readonly ArchiveEntry[] },
  compress: Compress,
): NpmPackage {
  const { os, cpu, libc } = systemOf(target);
  const executable = executableName(target);
  const kept = ["README.md", "LICENSE", "THIRD-PARTY-LICENSES.md"];
  return pack(
    {
      name: platformName(name, target),
      description: `bough for ${target.name}; install ${name}, which runs it`,
      ...{ os: [os], cpu: [cpu] },
      ...(libc === undefined ? {} : { libc: [libc] }),
      // Yarn would leave it in an archive, from which it can't be run.
      preferUnplugged: true,
    },
    files.flatMap((entry) => {
      if (entry.path === executable) return [{ ...entry, path: `bin/${executable}` }];
      return kept.includes(entry.path) ? [entry] : [];
    }),
    source,
    compress,
  );
}

/** Returns the package that people install. */
export function mainPackage(
  targets: readonly Target[],
  { source, name, files }: { source: Source; name: string; files: readonly ArchiveEntry[] },
  compress: Compress,
): NpmPackage {
  const launcher = readFileSync(join(import.meta.dir, "npm-launcher.cjs"));
  return pack(
    {
      name,
      description:
        "Builds container images from Dockerfiles, as docker build does, without a daemon and without root.",
      keywords: ["docker", "dockerfile", "container", "image", "build", "oci"],
      bin: { bough: "bin/bough.cjs" },
      engines: { node: ">=18" },
      optionalDependencies: Object.fromEntries(
        targets.map((target) => [platformName(name, target), source.version]),
      ),
    },
    [
      { type: "file", path: "bin/bough.cjs", mode: 0o755, content: launcher },
      ...files.filter(({ path }) => ["README.md", "LICENSE"].includes(path)),
    ],
    source,
    compress,
  );
}

/** `@bough/linux-x64`; of a package that has a scope `@team/bough-linux-x64`. */
function platformName(name: string, target: Target): string {
  const { os, cpu, libc } = systemOf(target);
  const system = `${os}-${cpu}${libc === "musl" ? "-musl" : ""}`;
  return name.startsWith("@") ? `${name}-${system}` : `@${name}/${system}`;
}

/** What npm calls a target's system. */
function systemOf({ format }: Target): { os: string; cpu: string; libc: "glibc" | "musl" | undefined } {
  const { container, architecture: cpu, loader } = format;
  if (container === "Mach-O") return { os: "darwin", cpu, libc: undefined };
  if (container === "PE") return { os: "win32", cpu, libc: undefined };
  return { os: "linux", cpu, libc: loader?.includes("musl") ? "musl" : "glibc" };
}

function pack(
  manifest: { name: string; [field: string]: unknown },
  files: readonly ArchiveEntry[],
  { version, date }: Source,
  compress: Compress,
): NpmPackage {
  const { name, ...rest } = manifest;
  const content = `${JSON.stringify({ name, version, license: "MIT", ...rest }, null, 2)}\n`;
  const entries: ArchiveEntry[] = [{ type: "file", path: "package.json", mode: 0o644, content }, ...files];
  const packed = entries.map((entry) => ({ ...entry, path: `package/${entry.path}` }));
  return {
    file: `${name.replace("@", "").replace("/", "-")}-${version}.tgz`,
    content: compress(writeTar(packed, date)),
  };
}
