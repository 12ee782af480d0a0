/** The Debian package and the npm packages of a release, installed from their files by dpkg and npm, with the real program. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ArchiveEntry } from "../../scripts/packaging/archive-entry.ts";
import { debName, writeDeb } from "../../scripts/packaging/deb.ts";
import { mainPackage, npmNameVariable, platformPackage, readNpmName } from "../../scripts/packaging/npm.ts";
import { runProgram } from "../../scripts/packaging/run-program.ts";
import { executableName, type Target, targets } from "../../scripts/packaging/targets.ts";
import { version } from "../../src/version.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { filesBelow } from "./fake-release.ts";

// npm unpacks 120 MB: on a busy machine, that takes minutes.
setDefaultTimeout(600_000);

const source = {
  version,
  commit: "0123456789abcdef0123456789abcdef01234567",
  date: new Date("2026-01-02T03:04:06Z"),
};
/** A release compresses the 120 MB of the program. */
const compress = (content: Uint8Array<ArrayBuffer>) =>
  Bun.gzipSync(content, { level: 0, library: "libdeflate" });
const target = (name: string): Target => {
  const found = targets.find((each) => each.name === name);
  if (found === undefined) throw new Error(`there is no target ${name}`);
  return found;
};
const own = target(`linux-${process.arch}`);

function filesWith(program: Uint8Array | string): ArchiveEntry[] {
  const file = (path: string, content: Uint8Array | string, mode = 0o644): ArchiveEntry => ({
    ...{ type: "file", path, mode, content },
  });
  return [
    file("bough", program, 0o755),
    file("README.md", "# bough\n"),
    file("LICENSE", readFileSync(join(import.meta.dir, "../../LICENSE"))),
    file("THIRD-PARTY-LICENSES.md", "# Others\n\nTheirs.\n"),
    ...["bough.bash", "_bough", "bough.fish"].map((name) => file(`completions/${name}`, `# ${name}\n`)),
    ...["bough.1", "bough-build.1", "bough-dockerfile.7"].map((name) => file(`man/${name}`, ".TH BOUGH 1\n")),
  ];
}

describe("the Debian package", () => {
  test("is installed by dpkg as root's, and runs", () => {
    const root = temporaryDirectory();
    const deb = join(temporaryDirectory(), debName(own, source) ?? "");
    writeFileSync(deb, writeDeb(own, source, filesWith(readFileSync(compileBough())), compress));
    const state = join(root, "var/lib/dpkg");
    mkdirSync(join(state, "info"), { recursive: true });
    mkdirSync(join(state, "updates"));
    writeFileSync(join(state, "status"), "");
    // The root has no libc6 that dpkg knows of.
    runProgram([
      "dpkg",
      `--root=${root}`,
      "--force-depends",
      "--force-unsafe-io",
      "--force-not-root",
      "--log=/dev/null",
      "--install",
      deb,
    ]);
    expect(filesBelow(join(root, "usr"))).toEqual([
      "bin/bough",
      "share/bash-completion/completions/bough",
      "share/doc/bough/README.md",
      "share/doc/bough/changelog.gz",
      "share/doc/bough/copyright",
      "share/fish/vendor_completions.d/bough.fish",
      "share/lintian/overrides/bough",
      "share/man/man1/bough-build.1.gz",
      "share/man/man1/bough.1.gz",
      "share/man/man7/bough-dockerfile.7.gz",
      "share/zsh/vendor-completions/_bough",
    ]);
    expect(runProgram([join(root, "usr/bin/bough"), "--version"])).toBe(`${version}\n`);
    expect(runProgram(["dpkg", `--root=${root}`, "--verify", "bough"])).toBe("");
    expect(runProgram(["man", "--local-file", join(root, "usr/share/man/man1/bough.1.gz")])).toContain(
      "BOUGH",
    );
    runProgram(["dpkg", `--root=${root}`, "--force-not-root", "--log=/dev/null", "--purge", "bough"]);
    rmSync(join(root, "var"), { recursive: true });
    expect(filesBelow(root)).toEqual([]);
  });

  test("has fields that dpkg reads, only root's files, and the same bytes each time", () => {
    const files = filesWith("program");
    const [arm, x64] = [target("linux-arm64"), target("linux-x64")];
    const deb = writeDeb(arm, source, files, compress);
    expect(writeDeb(arm, source, files.toReversed(), compress)).toEqual(deb);
    const path = join(temporaryDirectory(), "bough.deb");
    writeFileSync(path, deb);
    const fields = runProgram([
      "dpkg-deb",
      "--field",
      path,
      "Package",
      "Version",
      "Architecture",
      "Recommends",
    ]);
    expect(fields).toContain(`Version: ${version}\nArchitecture: arm64\n`);
    expect(fields).toMatch(/^Recommends: runc \| crun, skopeo, slirp4netns, uidmap/m);
    const list = runProgram(["dpkg-deb", "--contents", path]).trimEnd().split("\n");
    expect(list.filter((line) => !/^[-d]rw[-x]r-[-x]r-[-x] 0\/0 +\d+ 2026-01-02 /.test(line))).toEqual([]);
    expect(list[0]).toMatch(/ \.\/$/);
    expect(runProgram(["dpkg-deb", "--fsys-tarfile", path]).length).toBeGreaterThan(0);
    expect(targets.map((each) => debName(each, source)).filter((name) => name !== undefined)).toEqual([
      `bough_${version}_amd64.deb`,
      `bough_${version}_arm64.deb`,
    ]);
    expect(writeDeb(x64, source, files, compress)).not.toEqual(deb);
  });

  test("names the licence of each part, line by line as the format demands", () => {
    const path = join(temporaryDirectory(), "bough.deb");
    writeFileSync(path, writeDeb(own, source, filesWith("program"), compress));
    const root = temporaryDirectory();
    runProgram(["dpkg-deb", "--extract", path, root]);
    const copyright = readFileSync(join(root, "usr/share/doc/bough/copyright"), "utf8");
    expect(copyright).toContain(
      "\nComment: The executable holds other software. Its licences:\n # Others\n .\n Theirs.\n\nFiles: *\n",
    );
    expect(copyright).toMatch(
      /\nCopyright: \d{4} The bough developers\nLicense: Expat\n Permission is hereby granted/,
    );
    expect(copyright.split("\n").filter((line) => !/^( \S|[A-Z][A-Za-z-]+: |$)/.test(line))).toEqual([]);
  });
});

describe("the npm packages", () => {
  const files = filesWith("program");

  test("are installed from their files, run the program, pass on what ends it, and say what is missing", async () => {
    const options = { source, name: "bough", files: filesWith(readFileSync(compileBough())) };
    const project = temporaryDirectory();
    const packages = [mainPackage(targets, options, compress), platformPackage(own, options, compress)];
    for (const { file, content } of packages) writeFileSync(join(project, file), content);
    writeFileSync(join(project, "package.json"), "{}");
    // The other systems' packages can't be fetched: they are optional.
    const quiet = ["--offline", "--no-audit", "--no-fund", "--cache=cache", "--userconfig=/dev/null"];
    runProgram(["npm", "install", ...quiet, ...packages.map(({ file }) => `./${file}`)], { cwd: project });
    const bough = join(project, "node_modules/.bin/bough");
    const program = join(project, `node_modules/@bough/linux-${process.arch}/bin/bough`);
    const run = async (...words: string[]) => {
      const child = Bun.spawn([bough, ...words], { stdout: "pipe", stderr: "pipe" });
      const texts = [new Response(child.stdout).text(), new Response(child.stderr).text()] as const;
      const [stdout, stderr] = await Promise.all(texts);
      return { exitCode: await child.exited, stdout, stderr };
    };
    expect(await run("--version")).toEqual({ exitCode: 0, stdout: `${version}\n`, stderr: "" });
    const wrong = await run("images", "a b", "--nonsense");
    expect(wrong).toMatchObject({ exitCode: 2, stdout: "", stderr: expect.stringContaining("--nonsense") });

    rmSync(program);
    const script = 'trap "echo caught; kill -KILL $$" TERM\necho ready\nwhile :; do sleep 0.05; done';
    writeFileSync(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const child = Bun.spawn([bough], { stdout: "pipe", stderr: "pipe" });
    let output = "";
    // Lines may come in one chunk, or a line in several.
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      if (!output.includes("\n") && `${output}${chunk}`.includes("\n")) child.kill("SIGTERM");
      output += chunk;
    }
    await child.exited;
    const stderr = await new Response(child.stderr).text();
    expect({ output, stderr, signal: child.signalCode }).toEqual({
      ...{ output: "ready\ncaught\n", stderr: "", signal: "SIGKILL" },
    });

    rmSync(program);
    const missing = await run("--version");
    expect(missing).toMatchObject({ exitCode: 1, stdout: "" });
    expect(missing.stderr).toContain(
      `[ERROR] the package @bough/linux-${process.arch} with the program is missing: bough needs it\n`,
    );
    expect(missing.stderr).toContain(`npm install @bough/linux-${process.arch}@${version}\n`);
  });

  test("there is one for each target, for the systems that npm knows by these names", () => {
    const manifests = targets.map((each) => {
      const program = executableName(each);
      const renamed = files.map((entry) => (entry.path === "bough" ? { ...entry, path: program } : entry));
      const directory = temporaryDirectory();
      const { content } = platformPackage(each, { source, name: "bough", files: renamed }, (tar) => tar);
      writeFileSync(join(directory, "package.tar"), content);
      runProgram(["tar", "-xf", "package.tar"], { cwd: directory });
      expect(statSync(join(directory, "package/bin", program)).mode & 0o777).toBe(0o755);
      const manifest = JSON.parse(readFileSync(join(directory, "package/package.json"), "utf8"));
      return [manifest.name, ...manifest.os, ...manifest.cpu, ...(manifest.libc ?? [])].join(" ");
    });
    expect(manifests).toEqual([
      "@bough/linux-x64 linux x64 glibc",
      "@bough/linux-arm64 linux arm64 glibc",
      "@bough/linux-x64-musl linux x64 musl",
      "@bough/linux-arm64-musl linux arm64 musl",
      "@bough/darwin-x64 darwin x64",
      "@bough/darwin-arm64 darwin arm64",
      "@bough/win32-x64 win32 x64",
    ]);
  });

  test("have the name that the environment gives, if npm takes it", () => {
    expect(readNpmName({})).toBe("bough");
    expect(readNpmName({ [npmNameVariable]: "@team/bough" })).toBe("@team/bough");
    const scoped = { source, name: "@team/bough", files };
    expect(platformPackage(own, scoped, compress).file).toBe(
      `team-bough-linux-${process.arch}-${version}.tgz`,
    );
    for (const name of ["", "Bough", "../x", "a/b", "@/x"])
      expect(() => readNpmName({ [npmNameVariable]: name })).toThrow("npm has no packages of the name");
  });
});
