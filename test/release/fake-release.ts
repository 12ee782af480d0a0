/** Releases with a shell script in the executable's place, and `scripts/install.sh` for them, run by the system's sh. */
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

/** A key for this process alone: nobody has the secret one of the key in the installer. */
export const ownKey = generateKey();

/** The installer, with this key for its own and for version 1.2.3. */
export function ownInstaller(): string {
  const path = join(temporaryDirectory(), "install.sh");
  const text = readFileSync(installer, "utf8")
    .replace(/^key=.*$/m, `key=${renderPublicKey(ownKey)}`)
    .replace(/^version=.*$/m, "version=1.2.3");
  writeFileSync(path, text);
  return path;
}

/** Runs the installer in a home of its own; both of its outputs are `output`. */
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

/** Signs the checksums as they are now: with the right key as version 1.2.3 if not said otherwise. */
export function signRelease(release: string, options: { key?: SigningKey; comment?: string } = {}): void {
  const { key = ownKey, comment = `bough 1.2.3 commit ${commit}` } = options;
  const path = join(release, "SHA256SUMS");
  writeFileSync(`${path}.minisig`, signFile(readFileSync(path, "utf8"), comment, key));
}

/** Gives the release an archive, in the place of the one that is there, and signs it again. */
export function fill(release: string, script: string, name = ownTarget(), version = "1.2.3"): void {
  const target = targets.find((candidate) => candidate.name === name);
  const directory = `bough-${version}-${name}`;
  const file = (path: string, mode: number, content: string): ArchiveEntry => ({
    ...{ type: "file", path: `${directory}/${path}`, mode, content },
  });
  const entries = [
    file(target?.archive === "zip" ? "bough.exe" : "bough", 0o755, `#!/bin/sh\n# ${name}\n${script}\n`),
    ...["bough.bash", "_bough", "bough.fish"].map((path) => file(`completions/${path}`, 0o644, "")),
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

/** Other bytes of the same length, or fewer of them. */
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

const usual =
  "basename busybox cat cp dd dirname getconf grep gzip head ldd mkdir mktemp mv paste rm sed sh sha256sum shasum sysctl tail tar tr uname";

/** Made once for all tests of a file, after which its directory is gone. */
const paths = new Map<string, string>();

/** A PATH with the usual programs, those that are named (curl, minisign, ...), and these scripts over all. */
export function pathWith(named: string, scripts: Record<string, string>): string {
  const key = JSON.stringify([named, scripts]);
  const made = paths.get(key);
  if (made !== undefined && existsSync(made)) return made;
  const directory = temporaryDirectory();
  paths.set(key, directory);
  for (const program of [...usual.split(" "), ...named.split(" "), ...Object.keys(scripts)]) {
    const place = scripts[program] === undefined ? Bun.which(program) : null;
    const script = scripts[program] ?? (place === null ? undefined : `exec ${place} "$@"`);
    if (script === undefined) continue;
    writeFileSync(join(directory, program), `#!/bin/sh\n${script}\n`);
    chmodSync(join(directory, program), 0o755);
  }
  return directory;
}

/** A PATH as Alpine has it: busybox's programs, and those that are named. */
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

export interface ServerOptions {
  /** With a certificate: over HTTPS. */
  tls?: { cert: string; key: string };
  /** Where a path leads, if not to the release's file of that name. */
  redirect?: (pathname: string) => string | undefined;
}

/** A release on 127.0.0.1, in whatever directory it is asked for. */
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
