/** `scripts/install.sh`, run by the system's sh on releases with a shell script in the executable's place. */
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { ArchiveEntry } from "../../scripts/packaging/archive-entry.ts";
import { writeTar } from "../../scripts/packaging/tar.ts";
import { targets } from "../../scripts/packaging/targets.ts";
import { writeZip } from "../../scripts/packaging/zip.ts";
import { temporaryDirectory } from "../support/bough.ts";

const installer = join(import.meta.dir, "../../scripts/install.sh");
const date = new Date("2026-01-02T03:04:06Z");

describe("from a directory", () => {
  test("into ~/.local, with completions, and a word about PATH", async () => {
    const { home, ended } = await install(["--from", makeRelease()]);
    expect(ended).toEqual({
      exitCode: 0,
      output: [
        `installed ${home}/.local/bin/bough (1.2.3)`,
        `${home}/.local/bin is not in PATH. For this shell, and in ~/.profile or your shell's start-up file for all others:`,
        `  export PATH="${home}/.local/bin:$PATH"`,
        "",
      ].join("\n"),
    });
    expect(statSync(join(home, ".local/bin/bough")).mode & 0o777).toBe(0o755);
    expect(filesBelow(join(home, ".local"))).toEqual([
      "bin/bough",
      "share/bash-completion/completions/bough",
      "share/fish/vendor_completions.d/bough.fish",
      "share/zsh/site-functions/_bough",
    ]);
  });

  test("nothing is said about a PATH that has it, and an older one is replaced", async () => {
    const prefix = temporaryDirectory();
    const again = ["--from", makeRelease(), "--prefix", prefix];
    await install(again);
    const { home, ended } = await install(again, { PATH: `${process.env.PATH}:${prefix}/bin` });
    expect(ended).toEqual({ exitCode: 0, output: `installed ${prefix}/bin/bough (1.2.3)\n` });
    expect(readdirSync(join(prefix, "bin"))).toEqual(["bough"]);
    expect(readdirSync(home)).toEqual([]);
  });

  test("the script's own, where it lies in a release", async () => {
    const release = makeRelease();
    writeFileSync(join(release, "install.sh"), readFileSync(installer));
    const { ended } = await install([], {}, join(release, "install.sh"));
    expect(ended.exitCode).toBe(0);
  });
});

describe("over HTTP", () => {
  test.each(["curl", "wget"])("with %s", async (program) => {
    using server = serve(makeRelease());
    const { home, ended } = await install(["--from", `${server.url}some/where/`], {
      PATH: pathWith(program, {}),
    });
    expect(ended.output).toContain(`installed ${home}/.local/bin/bough (1.2.3)\n`);
    expect(server.paths).toEqual([
      "/some/where/SHA256SUMS",
      expect.stringMatching(/^\/some\/where\/bough-1.2.3-/),
    ]);
  });

  test("where neither is installed, that is what is said", async () => {
    const { ended } = await install(["--from", "http://127.0.0.1:1/"], { PATH: pathWith("none", {}) });
    expect(ended).toMatchObject({
      exitCode: 1,
      output: expect.stringContaining("curl and wget are both missing"),
    });
  });
});

describe("what is not right is not installed", () => {
  test.each<[string, (release: string) => void, string]>([
    ["a corrupt archive", (release) => damage(release), "is corrupt: its SHA-256 is "],
    ["an archive that is cut short", (release) => damage(release, 100), "is corrupt: its SHA-256 is "],
    ["an archive that is missing", (release) => rmSync(join(release, archiveName())), archiveName()],
    ["missing checksums", (release) => rmSync(join(release, "SHA256SUMS")), "SHA256SUMS"],
    ["checksums without this machine's archive", dropChecksum, "has no bough for"],
    [
      "an executable that does not run",
      (release) => fill(release, "exit 3"),
      "bough does not run on this machine",
    ],
  ])("%s", async (_, spoil, message) => {
    const release = makeRelease();
    spoil(release);
    using server = serve(release);
    for (const from of [release, server.url]) {
      const prefix = temporaryDirectory();
      mkdirSync(join(prefix, "bin"));
      writeFileSync(join(prefix, "bin/bough"), "the old one");
      const { ended } = await install(["--from", from, "--prefix", prefix]);
      expect(ended.exitCode).toBe(1);
      expect(ended.output).toContain(message);
      expect(readFileSync(join(prefix, "bin/bough"), "utf8")).toBe("the old one");
      expect(filesBelow(prefix)).toEqual(["bin/bough"]);
    }
  });

  test("a place that can't be written to", async () => {
    const prefix = join(temporaryDirectory(), "file");
    writeFileSync(prefix, "");
    const { ended } = await install(["--from", makeRelease(), "--prefix", prefix]);
    expect(ended.exitCode).toBe(1);
    expect(ended.output).toContain(`cannot write ${prefix}/bin/bough`);
    expect(ended.output).toContain("--prefix");
  });
});

test.each([
  [["--form", "x"], "unknown argument --form"],
  [["--from"], "--from needs a value"],
  [["--prefix", ""], "--prefix needs a value"],
])("%p is refused, and the usage shown", async (words, message) => {
  const { ended } = await install(words);
  expect(ended).toMatchObject({
    exitCode: 2,
    output: expect.stringContaining(`error: ${message}\nUsage: install.sh`),
  });
});

test("without a release beside it the script asks for one", async () => {
  const { ended } = await install([]);
  expect(ended).toEqual({
    exitCode: 1,
    output: "error: there is no release beside this script\nName its place with --from.\n",
  });
});

describe("the archive that a machine gets", () => {
  const glibc = { getconf: "echo glibc 2.36", ldd: "echo 'ldd (GNU libc) 2.36'" };
  const musl = { getconf: "exit 1", ldd: "echo 'musl libc (x86_64)' >&2; exit 1" };
  test.each<[string, Record<string, string>, string]>([
    ["Debian on x64", { uname: uname("Linux", "x86_64"), ...glibc }, "linux-x64"],
    ["Debian on arm64", { uname: uname("Linux", "aarch64"), ...glibc }, "linux-arm64"],
    ["Alpine on x64", { uname: uname("Linux", "x86_64"), ...musl }, "linux-x64-musl"],
    ["Alpine on arm64", { uname: uname("Linux", "aarch64"), ...musl }, "linux-arm64-musl"],
    ["a Mac of Intel's", { uname: uname("Darwin", "x86_64"), sysctl: "exit 1" }, "macos-x64"],
    ["a Mac of Apple's", { uname: uname("Darwin", "arm64"), sysctl: "echo 0" }, "macos-arm64"],
    ["a shell under Rosetta", { uname: uname("Darwin", "x86_64"), sysctl: "echo 1" }, "macos-arm64"],
    [
      "Git's shell on Windows",
      { uname: uname("MINGW64_NT-10.0-22631", "x86_64"), unzip: 'busybox unzip "$@"' },
      "windows-x64",
    ],
  ])("%s", async (_, programs, target) => {
    const prefix = temporaryDirectory();
    const { ended } = await install(["--from", makeRelease(), "--prefix", prefix], {
      PATH: pathWith("none", programs),
    });
    expect(ended.output).toContain("(1.2.3)\n");
    const installed = readdirSync(join(prefix, "bin"));
    expect(installed).toEqual([target.startsWith("windows") ? "bough.exe" : "bough"]);
    expect(readFileSync(join(prefix, "bin", installed[0] ?? ""), "utf8")).toContain(`# ${target}\n`);
  });

  test.each([
    ["FreeBSD", uname("FreeBSD", "amd64"), "there is no bough for FreeBSD"],
    ["RISC-V", uname("Linux", "riscv64"), "there is no bough for processors of the kind riscv64"],
  ])("none for %s", async (_, program, message) => {
    const { ended } = await install(["--from", makeRelease()], {
      PATH: pathWith("none", { uname: program }),
    });
    expect(ended).toEqual({ exitCode: 1, output: `error: ${message}\n` });
  });

  test("the one that --target names, on whatever machine", async () => {
    const prefix = temporaryDirectory();
    const words = ["--from", makeRelease(), "--prefix", prefix, "--target", "linux-arm64-musl"];
    await install(words, { PATH: pathWith("none", { uname: uname("FreeBSD", "amd64") }) });
    expect(readFileSync(join(prefix, "bin/bough"), "utf8")).toContain("# linux-arm64-musl\n");
  });

  test("on Alpine, what the executable needs is said where it does not run", async () => {
    const release = makeRelease();
    fill(release, "echo 'Error loading shared library libstdc++.so.6' >&2; exit 127", "linux-x64-musl");
    const { ended } = await install(["--from", release], {
      PATH: pathWith("none", { uname: uname("Linux", "x86_64"), ...musl }),
    });
    expect(ended.output).toBe(
      "error: bough does not run on this machine: Error loading shared library libstdc++.so.6\n" +
        "It needs the C++ library; on Alpine: apk add libstdc++\n",
    );
  });
});

async function install(
  words: readonly string[],
  environment: Record<string, string> = {},
  script = installer,
) {
  const home = temporaryDirectory();
  const child = Bun.spawn(["/bin/sh", "-c", 'exec /bin/sh "$@" 2>&1', "sh", script, ...words], {
    env: { PATH: process.env.PATH ?? "", HOME: home, ...environment },
    cwd: home,
    stdin: "ignore",
    stdout: "pipe",
  });
  const output = await new Response(child.stdout).text();
  return { home, ended: { exitCode: await child.exited, output } };
}

/** A release for every target, whose executables only know their version and their target. */
function makeRelease(): string {
  const release = temporaryDirectory();
  writeFileSync(join(release, "SHA256SUMS"), "");
  for (const { name } of targets) fill(release, "echo 1.2.3", name);
  return release;
}

function fill(release: string, script: string, name = ownTarget()): void {
  const target = targets.find((candidate) => candidate.name === name);
  const directory = `bough-1.2.3-${name}`;
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
}

function dropChecksum(release: string): void {
  const path = join(release, "SHA256SUMS");
  writeFileSync(path, withoutChecksum(path, archiveName()));
}

function withoutChecksum(path: string, archive: string): string {
  const lines = readFileSync(path, "utf8").split("\n");
  return lines.filter((line) => !line.endsWith(`  ${archive}`)).join("\n");
}

/** Other bytes of the same length, or fewer of them. */
function damage(release: string, length?: number): void {
  const path = join(release, archiveName());
  const content = readFileSync(path);
  content.writeUInt8(content.readUInt8(60) ^ 1, 60);
  writeFileSync(path, content.subarray(0, length));
}

function ownTarget(): string {
  const system = process.platform === "darwin" ? "macos" : "linux";
  return `${system}-${process.arch}`;
}

function archiveName(): string {
  return `bough-1.2.3-${ownTarget()}.tar.gz`;
}

function uname(system: string, processor: string): string {
  return `case $1 in -s) echo ${system} ;; -m) echo ${processor} ;; esac`;
}

/** A PATH with the usual programs, of curl and wget only the one that is named, and these scripts over all. */
function pathWith(downloader: string, scripts: Record<string, string>): string {
  const directory = temporaryDirectory();
  const usual = [
    "basename",
    "busybox",
    "cat",
    "cp",
    "dirname",
    "getconf",
    "grep",
    "gzip",
    "head",
    "ldd",
    "mkdir",
  ];
  const others = [
    "mktemp",
    "mv",
    "paste",
    "rm",
    "sed",
    "sh",
    "sha256sum",
    "shasum",
    "sysctl",
    "tar",
    "uname",
  ];
  for (const program of [...usual, ...others, downloader, ...Object.keys(scripts)]) {
    const place = scripts[program] === undefined ? Bun.which(program) : null;
    const script = scripts[program] ?? (place === null ? undefined : `exec ${place} "$@"`);
    if (script === undefined) continue;
    writeFileSync(join(directory, program), `#!/bin/sh\n${script}\n`);
    chmodSync(join(directory, program), 0o755);
  }
  return directory;
}

function serve(release: string) {
  const paths: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url);
      paths.push(pathname);
      const file = join(release, pathname.slice(pathname.lastIndexOf("/") + 1));
      return existsSync(file) ? new Response(Bun.file(file)) : new Response("none\n", { status: 404 });
    },
  });
  return { url: server.url.href, paths, [Symbol.dispose]: () => void server.stop(true) };
}

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .sort();
}
