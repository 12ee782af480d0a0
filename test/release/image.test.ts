/** The container image of a release, with static programs in place of bough and glibc. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ArchiveEntry } from "../../scripts/packaging/archive-entry.ts";
import { baseFiles, withParents } from "../../scripts/packaging/base-files.ts";
import { writeImageLayout } from "../../scripts/packaging/image-layout.ts";
import { runProgram } from "../../scripts/packaging/run-program.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

const created = new Date("2026-01-02T03:04:05Z");
const config = { User: "1000:50", Entrypoint: ["busybox"], Env: ["PATH=/bin"], Labels: { a: "b" } };

describe("an image layout for two platforms", () => {
  const directory = temporaryDirectory();
  const layers = [
    withParents([{ type: "directory", path: "home/app", mode: 0o1777, uid: 1000, gid: 50 }]),
    withParents([
      { type: "file", path: "bin/busybox", mode: 0o755, content: readFileSync("/bin/busybox") },
      { type: "symlink", path: "bin/stat", target: "busybox" },
    ]),
  ];
  const images = (["amd64", "arm64"] as const).map((architecture) => ({ architecture, layers }));
  const digest = writeImageLayout(directory, images, { tag: "1.2.3", created, config });
  const reference = `oci:${directory}:1.2.3`;

  test.each(["amd64", "arm64"])("has the given configuration for %s", (architecture) => {
    const words = [
      "skopeo",
      "--override-arch",
      architecture,
      "--override-os",
      "linux",
      "inspect",
      "--config",
    ];
    expect(JSON.parse(runProgram([...words, reference]))).toMatchObject({
      architecture,
      os: "linux",
      created: "2026-01-02T03:04:05Z",
      config,
    });
  });

  test("is the same each time, with the same digest", () => {
    const again = temporaryDirectory();
    expect(writeImageLayout(again, images, { tag: "1.2.3", created, config })).toBe(digest);
    expect(readFileSync(join(again, "index.json"))).toEqual(readFileSync(join(directory, "index.json")));
  });

  test("runs on bough's engine, with all of its layers", async () => {
    const options = { workingDirectory: "/", environment: { BOUGH_HOME: temporaryDirectory() } };
    const imported = await runBough(["--local", "images", "import", reference, "--tag", "app:1"], options);
    expect(imported.exitCode).toBe(0);
    const command = ["stat", "-c", "%n %a %u:%g", "/home/app", "/bin/busybox"];
    const ended = await runBough(["--local", "run", "--use", "tag:app:1", "-D", "--", ...command], options);
    expect(ended).toMatchObject({
      exitCode: 0,
      stdout: "/home/app 1777 1000:50\n/bin/busybox 755 0:0\n",
    });
  });
});

describe("the files below the executable", () => {
  const packaged = (name: string, files: Record<string, string>) => {
    const directory = temporaryDirectory();
    writeFiles(directory, { ...files, [`usr/share/doc/${name}/copyright`]: `${name}'s licence` });
    return { name, version: "1", control: `Package: ${name}\n`, directory };
  };
  const certificates = packaged("ca-certificates", {
    "usr/share/ca-certificates/mozilla/B.crt": "second\n",
    "usr/share/ca-certificates/mozilla/A.crt": "first\n",
    "usr/share/ca-certificates/mozilla/README": "",
  });
  const names = [
    "c.so.6",
    "dl.so.2",
    "m.so.6",
    "nss_dns.so.2",
    "nss_files.so.2",
    "pthread.so.0",
    "resolv.so.2",
  ];
  const libraries = (place: string) =>
    Object.fromEntries(
      ["ld-linux-aarch64.so.1", ...names.map((name) => `lib${name}`)].map((name) => [
        `${place}/aarch64-linux-gnu/${name}`,
        name,
      ]),
    );
  const make = (place: string): ArchiveEntry[] =>
    baseFiles(
      { glibc: packaged("libc6", libraries(place)), certificates },
      "aarch64-linux-gnu",
      "/lib/ld-linux-aarch64.so.1",
    );

  test.each([["lib"], ["usr/lib"]])(
    "include glibc from %s of its package, and the loader where the executable expects it",
    (place) => {
      const found = new Map(make(place).map((entry) => [entry.path, entry]));
      expect(found.get("lib/ld-linux-aarch64.so.1")).toMatchObject({ mode: 0o755 });
      expect(found.get("lib/aarch64-linux-gnu/libc.so.6")).toMatchObject({ mode: 0o755 });
      expect(found.get("etc/ssl/certs/ca-certificates.crt")).toMatchObject({ content: "first\nsecond\n" });
      expect(found.get("usr/share/doc/libc6/copyright")).toMatchObject({ content: "libc6's licence" });
      expect(found.get("var/lib/dpkg/status.d/libc6")).toMatchObject({ content: "Package: libc6\n" });
      expect(found.get("tmp")).toMatchObject({ type: "directory", mode: 0o1777 });
    },
  );

  test("include one user, to whom the home and the working directory belong", () => {
    const entries = make("lib");
    const passwd = entries.find(({ path }) => path === "etc/passwd");
    expect(passwd).toMatchObject({
      content: expect.stringContaining("\nbough:x:65532:65532:bough:/home/bough:"),
    });
    expect(
      entries.filter(({ uid }) => uid !== undefined).map(({ path, uid, gid }) => [path, uid, gid]),
    ).toEqual([
      ["home/bough", 65532, 65532],
      ["work", 65532, 65532],
    ]);
  });

  test("include every directory once", () => {
    const paths = make("lib").map(({ path }) => path);
    expect(new Set(paths).size).toBe(paths.length);
    for (const path of ["etc", "etc/ssl", "home", "lib", "usr", "usr/share/doc/libc6", "var/lib/dpkg"]) {
      expect(paths).toContain(path);
    }
  });

  test("require that the package has all libraries", () => {
    expect(() => make("nowhere")).toThrow("libc6 1 has no libc.so.6");
  });
});
