/** Releases with a shell script in place of the executable, and `scripts/install.sh` for them, run by the system's sh. */
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { ArchiveEntry } from "../../scripts/packaging/archive-entry.ts";
import { generateKey, renderPublicKey, type SigningKey, signFile } from "../../scripts/packaging/minisign.ts";
import { writeTar } from "../../scripts/packaging/tar.ts";
import { targets } from "../../scripts/packaging/targets.ts";
import { writeZip } from "../../scripts/packaging/zip.ts";
import { temporaryDirectory } from "../support/bough.ts";

export const installer = join(import.meta.dir, "../../scripts/install.sh");
const date = new Date("2026-01-02T03:04:06Z");
const commit = "0123456789abcdef0123456789abcdef01234567";

/** A key of this process, because tests don't have the secret key for the one in the installer. */
export const ownKey = generateKey();

/** Copies the installer, with this key and for version 1.2.3. */
export function ownInstaller(): string {
  const path = join(temporaryDirectory(), "install.sh");
  const text = readFileSync(installer, "utf8")
    .replace(/^key=.*$/m, `key=${renderPublicKey(ownKey)}`)
    .replace(/^version=.*$/m, "version=1.2.3");
  writeFileSync(path, text);
  return path;
}

/** Runs the installer in a new home; `output` has standard output and standard error. */
export async function install(
  words: readonly string[],
  environment: Record<string, string> = {},
  { script = ownInstaller(), shell = ["/bin/sh"] }: { script?: string; shell?: readonly string[] } = {},
) {
  const home = temporaryDirectory();
  const child = Bun.spawn(["/bin/sh", "-c", 'exec "$@" 2>&1', "sh", ...shell, script, ...words], {
    env: { PATH: process.env.PATH ?? "", HOME: home, ...environment },
    cwd: home,
    stdin: "ignore",
    stdout: "pipe",
  });
  const output = await new Response(child.stdout).text();
  return { home, ended: { exitCode: await child.exited, output } };
}

/** A release for every target, whose executables only know their version and their target. */
export function makeRelease(version = "1.2.3"): string {
  const release = temporaryDirectory();
  writeFileSync(join(release, "SHA256SUMS"), "");
  for (const { name } of targets) fill(release, `echo ${version}`, name, version);
  return release;
}

/** Signs the current checksums, by default with the right key and as version 1.2.3. */
export function signRelease(release: string, options: { key?: SigningKey; comment?: string } = {}): void {
  const { key = ownKey, comment = `bough 1.2.3 commit ${commit}` } = options;
  const path = join(release, "SHA256SUMS");
  writeFileSync(`${path}.minisig`, signFile(readFileSync(path, "utf8"), comment, key));
}

/** Adds an archive to the release or replaces it, and signs the release again. */
export function fill(release: string, script: string, name = ownTarget(), version = "1.2.3"): void {
  const target = targets.find((candidate) => candidate.name === name);
  const directory = `bough-${version}-${name}`;
  const file = (path: string, mode: number, content: string): ArchiveEntry => ({
    ...{ type: "file", path: `${directory}/${path}`, mode, content },
  });
  const entries = [
    file(target?.archive === "zip" ? "bough.exe" : "bough", 0o755, `#!/bin/sh\n# ${name}\n${script}\n`),
    ...["bough.bash", "_bough", "bough.fish"].map((path) => file(`completions/${path}`, 0o644, "")),
    ...["bough.1", "bough-build.1", "bough-dockerfile.7"].map((path) => file(`man/${path}`, 0o644, "")),
  ];
  const archive = `${directory}.${target?.archive}`;
  const content = target?.archive === "zip" ? writeZip(entries, date) : Bun.gzipSync(writeTar(entries, date));
  writeFileSync(join(release, archive), content);
  const digest = new Bun.CryptoHasher("sha256").update(content).digest("hex");
  const path = join(release, "SHA256SUMS");
  writeFileSync(path, `${withoutChecksum(path, archive)}${digest}  ${archive}\n`);
  signRelease(release, { comment: `bough ${version} commit ${commit}` });
}

export function dropChecksum(release: string): void {
  const path = join(release, "SHA256SUMS");
  writeFileSync(path, withoutChecksum(path, archiveName()));
  signRelease(release);
}

function withoutChecksum(path: string, archive: string): string {
  const lines = readFileSync(path, "utf8").split("\n");
  return lines.filter((line) => !line.endsWith(`  ${archive}`)).join("\n");
}

/** Changes a byte of the archive, and cuts it to `length` if that is given. */
export function damage(release: string, length?: number): void {
  const path = join(release, archiveName());
  const content = readFileSync(path);
  content.writeUInt8(content.readUInt8(60) ^ 1, 60);
  writeFileSync(path, content.subarray(0, length));
}

function ownTarget(): string {
  const system = process.platform === "darwin" ? "macos" : "linux";
  return `${system}-${process.arch}`;
}

export function archiveName(): string {
  return `bough-1.2.3-${ownTarget()}.tar.gz`;
}

export function uname(system: string, processor: string): string {
  return `case $1 in -s) echo ${system} ;; -m) echo ${processor} ;; esac`;
}

const commonPrograms =
  "basename busybox cat cp dd dirname getconf grep gzip head ldd mkdir mktemp mv paste rm sed sh sha256sum shasum sysctl tail tar tr uname";

/** Directories of `pathWith`: made once for all tests of a file, and removed after them. */
const paths = new Map<string, string>();

/** A PATH with the common programs, those that are named (curl, minisign, ...), and scripts that replace programs. */
export function pathWith(named: string, scripts: Record<string, string>): string {
  const key = JSON.stringify([named, scripts]);
  const made = paths.get(key);
  if (made !== undefined && existsSync(made)) return made;
  const directory = temporaryDirectory();
  paths.set(key, directory);
  for (const program of [...commonPrograms.split(" "), ...named.split(" "), ...Object.keys(scripts)]) {
    const place = scripts[program] === undefined ? Bun.which(program) : null;
    const script = scripts[program] ?? (place === null ? undefined : `exec ${place} "$@"`);
    if (script === undefined) continue;
    writeFileSync(join(directory, program), `#!/bin/sh\n${script}\n`);
    chmodSync(join(directory, program), 0o755);
  }
  return directory;
}

/** A PATH as in Alpine: busybox's programs, and those that are named. */
export function busyboxPath(named: string): string {
  const directory = temporaryDirectory();
  for (const applet of Bun.spawnSync(["busybox", "--list"]).stdout.toString().trim().split("\n")) {
    symlinkSync(Bun.which("busybox") ?? "", join(directory, applet));
  }
  for (const program of named.split(" ")) {
    rmSync(join(directory, program), { force: true });
    symlinkSync(Bun.which(program) ?? "", join(directory, program));
  }
  return directory;
}

interface ServerOptions {
  /** The certificate for HTTPS; without it HTTP. */
  tls?: { cert: string; key: string };
  /** The address to which a path redirects, if not to the release's file of that name. */
  redirect?: (pathname: string) => string | undefined;
}

/** Serves a release on 127.0.0.1, below any path. */
export function serve(release: string, { tls, redirect }: ServerOptions = {}) {
  const paths: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    ...(tls === undefined ? {} : { tls }),
    fetch(request) {
      const { pathname } = new URL(request.url);
      paths.push(pathname);
      const location = redirect?.(pathname);
      if (location !== undefined) return new Response(null, { status: 302, headers: { Location: location } });
      const file = join(release, pathname.slice(pathname.lastIndexOf("/") + 1));
      return existsSync(file) ? new Response(Bun.file(file)) : new Response("none\n", { status: 404 });
    },
  });
  return { url: server.url.href, paths, [Symbol.dispose]: () => void server.stop(true) };
}

export function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();
}
