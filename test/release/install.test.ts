/** `scripts/install.sh`, run by the system's sh on releases with a shell script in place of the executable. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import {
  archiveName,
  damage,
  dropChecksum,
  filesBelow,
  fill,
  install,
  makeRelease,
  ownInstaller,
  pathWith,
  serve,
  uname,
} from "./fake-release.ts";

describe("installs from a directory", () => {
  test("into ~/.local, with completions and a message about PATH", async () => {
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
      "share/man/man1/bough-build.1",
      "share/man/man1/bough.1",
      "share/man/man7/bough-dockerfile.7",
      "share/zsh/site-functions/_bough",
    ]);
  });

  test("without a message if PATH has it, and replaces an older version", async () => {
    const prefix = temporaryDirectory();
    const again = ["--from", makeRelease(), "--prefix", prefix];
    await install(again);
    const { home, ended } = await install(again, { PATH: `${process.env.PATH}:${prefix}/bin` });
    expect(ended).toEqual({ exitCode: 0, output: `installed ${prefix}/bin/bough (1.2.3)\n` });
    expect(readdirSync(join(prefix, "bin"))).toEqual(["bough"]);
    expect(readdirSync(home)).toEqual([]);
  });

  test("of the script, if it is in a release", async () => {
    const release = makeRelease();
    writeFileSync(join(release, "install.sh"), readFileSync(ownInstaller()));
    const { ended } = await install([], {}, { script: join(release, "install.sh") });
    expect(ended.exitCode).toBe(0);
  });
});

describe("installs over HTTP", () => {
  test.each(["curl", "wget"])("with %s", async (program) => {
    using server = serve(makeRelease());
    const { home, ended } = await install(["--from", `${server.url}some/where/`], {
      PATH: pathWith(program, {}),
    });
    expect(ended.output).toContain(`installed ${home}/.local/bin/bough (1.2.3)\n`);
    expect(server.paths).toEqual([
      "/some/where/SHA256SUMS",
      "/some/where/SHA256SUMS.minisig",
      expect.stringMatching(/^\/some\/where\/bough-1.2.3-/),
    ]);
  });

  test("unless both curl and wget are missing", async () => {
    const { ended } = await install(["--from", "http://127.0.0.1:1/"], { PATH: pathWith("none", {}) });
    expect(ended).toMatchObject({
      exitCode: 1,
      output: expect.stringContaining("curl and wget are both missing"),
    });
  });
});

describe("does not install", () => {
  test.each<[string, (release: string) => void, string]>([
    ["a corrupt archive", (release) => damage(release), "is corrupt: its SHA-256 is "],
    ["a truncated archive", (release) => damage(release, 100), "is corrupt: its SHA-256 is "],
    ["a missing archive", (release) => rmSync(join(release, archiveName())), archiveName()],
    ["missing checksums", (release) => rmSync(join(release, "SHA256SUMS")), "SHA256SUMS"],
    ["checksums without this machine's archive", dropChecksum, "has no bough 1.2.3 for"],
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

  test("to a place that can't be written", async () => {
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
])("%p is refused, and the usage is shown", async (words, message) => {
  const { ended } = await install(words);
  expect(ended).toMatchObject({
    exitCode: 2,
    output: expect.stringContaining(`error: ${message}\nUsage: install.sh`),
  });
});

test("a script without a release beside it says that --from is needed", async () => {
  const { ended } = await install([]);
  expect(ended).toEqual({
    exitCode: 1,
    output: "error: there is no release in the directory of this script\nName another place with --from.\n",
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
    ["a Mac with an Intel processor", { uname: uname("Darwin", "x86_64"), sysctl: "exit 1" }, "macos-x64"],
    ["a Mac with an Apple processor", { uname: uname("Darwin", "arm64"), sysctl: "echo 0" }, "macos-arm64"],
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
    ["RISC-V", uname("Linux", "riscv64"), "there is no bough for the processor riscv64"],
  ])("does not exist for %s", async (_, program, message) => {
    const { ended } = await install(["--from", makeRelease()], {
      PATH: pathWith("none", { uname: program }),
    });
    expect(ended).toEqual({ exitCode: 1, output: `error: ${message}\n` });
  });

  test("is that of --target, on any machine", async () => {
    const prefix = temporaryDirectory();
    const words = ["--from", makeRelease(), "--prefix", prefix, "--target", "linux-arm64-musl"];
    await install(words, { PATH: pathWith("none", { uname: uname("FreeBSD", "amd64") }) });
    expect(readFileSync(join(prefix, "bin/bough"), "utf8")).toContain("# linux-arm64-musl\n");
  });

  test("needs a package on Alpine, which is named if the executable does not run", async () => {
    const release = makeRelease();
    fill(release, "echo 'Error loading shared library libstdc++.so.6' >&2; exit 127", "linux-x64-musl");
    const { ended } = await install(["--from", release], {
      PATH: pathWith("none", { uname: uname("Linux", "x86_64"), ...musl }),
    });
    expect(ended.output).toEndWith(
      "error: bough does not run on this machine: Error loading shared library libstdc++.so.6\n" +
        "It needs the C++ library; on Alpine: apk add libstdc++\n",
    );
  });
});
