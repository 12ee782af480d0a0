import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { runProgram } from "./run-program.ts";
import type { Target } from "./targets.ts";

/** A package as bun.lock pins it. */
export interface LockedPackage {
  version: string;
  /** `sha512-` and the digest in base64. */
  integrity: string;
}

/** Returns the version and digest of a package in bun.lock. */
export function lockedPackage(root: string, name: string): LockedPackage {
  const lock: unknown = Bun.JSONC.parse(readFileSync(join(root, "bun.lock"), "utf8"));
  const { packages } = lock as { packages: Record<string, readonly unknown[]> };
  const entry = packages[name];
  const [resolved, , , integrity] = entry ?? [];
  if (typeof resolved !== "string" || typeof integrity !== "string") {
    throw new Error(`bun.lock does not pin the package ${name}`);
  }
  return { version: resolved.slice(resolved.lastIndexOf("@") + 1), integrity };
}

/**
 * Returns Bun's executable for a target, from the npm registry and verified with bun.lock: `bun build --target` alone would
 * accept any bytes in its cache.
 *
 * @param cache the directory of caches, by default the user's
 */
export function bringRuntime(root: string, target: Target, cache?: string): string {
  const runtime = unpackRuntime(root, target, cache);
  const pinned = pinnedExecutables(root).get(target.runtimePackage);
  if (pinned?.sha512 === digestFile(runtime)) return runtime;
  throw new Error(`${target.runtimePackage}: its executable is not the one that ${pinFile} has a digest of`);
}

/** Returns the executable without checking its digest in `pinFile`, for `pin-runtimes.ts`, which writes that file. */
export function unpackRuntime(
  root: string,
  target: Target,
  caches = process.env.XDG_CACHE_HOME || join(homedir(), ".cache"),
): string {
  const { runtimePackage, format } = target;
  const { version, integrity } = lockedPackage(root, runtimePackage);
  const cache = join(caches, "bough-toolchain", "runtimes");
  mkdirSync(cache, { recursive: true });
  const tarball = join(cache, `${target.bunTarget}-${version}.tgz`);
  if (!existsSync(tarball)) download(`${runtimePackage}@${version}`, cache, tarball);
  const digest = new Bun.CryptoHasher("sha512").update(readFileSync(tarball)).digest("base64");
  if (`sha512-${digest}` !== integrity) {
    rmSync(tarball);
    throw new Error(`${runtimePackage}@${version} is not what bun.lock pins: sha512-${digest}`);
  }
  const name = format.container === "PE" ? "bun.exe" : "bun";
  const runtime = join(cache, `${target.bunTarget}-${version}`, name);
  // Not in place: another process may be reading the same file.
  const unfinished = mkdtempSync(join(cache, "unfinished-"));
  try {
    runProgram(["tar", "-xzf", tarball, "-C", unfinished, "--strip-components=2", `package/bin/${name}`]);
    mkdirSync(dirname(runtime), { recursive: true });
    renameSync(join(unfinished, name), runtime);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
  return runtime;
}

/** Digests of the executables in the packages that bun.lock pins; scripts/toolchain.sh runs a Bun that is one of these. */
export const pinFile = "scripts/bun.sha512";

/** Reads `pinFile`. Returns versions and digests by package. */
export function pinnedExecutables(root: string): Map<string, { version: string; sha512: string }> {
  const lines = readFileSync(join(root, pinFile), "utf8").matchAll(/^([0-9a-f]{128}) {2}(\S+)@([\d.]+)$/gm);
  return new Map(
    Array.from(lines, ([, sha512 = "", name = "", version = ""]) => [name, { version, sha512 }]),
  );
}

export function digestFile(path: string): string {
  return new Bun.CryptoHasher("sha512").update(readFileSync(path)).digest("hex");
}

function download(specifier: string, cache: string, tarball: string): void {
  const directory = mkdtempSync(join(cache, "download-"));
  try {
    const name = runProgram(
      ["npm", "pack", specifier, "--silent", "--ignore-scripts", "--pack-destination", directory],
      { cwd: directory },
    );
    renameSync(join(directory, name.trim()), tarball);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
