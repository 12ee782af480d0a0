/** Dockerfiles that name images on this machine's disk, and tags that a build must not move. */
import { beforeAll, describe, expect, test } from "bun:test";
import { symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { runBough, temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { archiveOf, dockerFiles, ociFiles, skopeoFiles, writeRawFiles } from "../../support/image-bytes.ts";
import { tarOf } from "../../support/tar-bytes.ts";
import { type Canary, makeCanary } from "../canary.ts";

const environment = { BOUGH_HOME: "" };
/** Returns an image with one file, `attacker`, which has the given text. */
const image = (attacker = "yes") => ({ layers: [tarOf([{ name: "attacker", content: attacker }])] });
let canary: Canary;
/** A directory outside of all contexts. */
let outside: string;

beforeAll(async () => {
  environment.BOUGH_HOME = temporaryDirectory();
  canary = makeCanary(temporaryDirectory());
  outside = temporaryDirectory();
  writeRawFiles(join(outside, "layout"), ociFiles(image()));
  const layout = await makeBusyboxLayout(join(outside, "alpine"));
  const imported = await bough(["images", "import", layout, "--tag", "alpine:latest"]);
  expect(imported).toMatchObject({ exitCode: 0 });
});

function bough(words: readonly string[]) {
  return runBough(["--local", ...words], { workingDirectory: "/", environment });
}

async function listTags(): Promise<string[]> {
  const { stdout } = await bough(["images", "-f", "json"]);
  const images = JSON.parse(stdout) as { uuid: string; tag: string | null }[];
  return images.map(({ uuid, tag }) => `${tag} ${uuid}`).sort();
}

/** Makes a context with an image in each format, and with links out of it. */
function contextOf(dockerfile: string): string {
  const context = temporaryDirectory();
  writeFileSync(join(context, "Dockerfile"), dockerfile);
  writeRawFiles(join(context, "alpine"), ociFiles(image()));
  writeRawFiles(join(context, "directory"), skopeoFiles(image()));
  writeFileSync(join(context, "oci.tar"), archiveOf(ociFiles(image())));
  writeFileSync(join(context, "docker.tar"), archiveOf(dockerFiles(image())));
  symlinkSync(join(outside, "layout"), join(context, "link"));
  symlinkSync(outside, join(context, "up"));
  return context;
}

describe("build and build --check refuse a FROM of:", () => {
  const allowed = ["--allow-local-from"];

  test.each<[string, string, string[], number, string]>([
    ["a layout", "FROM oci:./alpine", [], 1, "names files of this machine"],
    ["an archive", "FROM oci-archive:./oci.tar", [], 1, "names files of this machine"],
    ["an archive of docker save", "FROM docker-archive:./docker.tar", [], 1, "names files of this machine"],
    ["a directory", "FROM dir:./directory", [], 1, "names files of this machine"],
    ["an absolute path", "FROM oci:/etc", [], 1, "names files of this machine"],
    [
      "a layout named by a variable",
      "ARG BASE=oci:./alpine\nFROM ${BASE}",
      [],
      2,
      "names files of this machine",
    ],
    [
      "a layout in a later stage",
      "FROM alpine\nFROM oci:./alpine AS two",
      [],
      2,
      "names files of this machine",
    ],
    ["a layout above the context", "FROM oci:../alpine", allowed, 1, "cannot read"],
    ["a layout beside the context", "FROM oci:OUTSIDE/layout", allowed, 1, "leads out of the build context"],
    [
      "a layout with .. in its path",
      "FROM oci:./alpine/../../OUTNAME/layout",
      allowed,
      1,
      "leads out of the build context",
    ],
    ["a layout behind a link", "FROM oci:./link", allowed, 1, "leads out of the build context"],
    [
      "a layout behind a directory that is a link",
      "FROM oci:./up/layout",
      allowed,
      1,
      "leads out of the build context",
    ],
    ["the machine's root", "FROM dir:/", allowed, 1, "leads out of the build context"],
    ["a layout that does not exist", "FROM oci:./none", allowed, 1, "no such file or directory"],
    [
      "an image in Docker's store",
      "FROM docker-daemon:app:1",
      allowed,
      1,
      "importing from docker-daemon: is not supported",
    ],
    [
      "an image in podman's store",
      "FROM containers-storage:app",
      allowed,
      1,
      "importing from containers-storage: is not supported",
    ],
    [
      "an ostree repository",
      "FROM ostree:app@/ostree",
      allowed,
      1,
      "importing from ostree: is not supported",
    ],
    [
      "a tarball of any kind",
      "FROM tarball:./oci.tar",
      allowed,
      1,
      "importing from tarball: is not supported",
    ],
    ["a SIF file", "FROM sif:./oci.tar", allowed, 1, "importing from sif: is not supported"],
  ])("%s", async (_, dockerfile, options, line, message) => {
    const text = dockerfile.replace("OUTSIDE", outside).replace("OUTNAME", basename(outside));
    const context = contextOf(`${text}\n`);
    const before = [canary.state(), await listTags()];
    const [built, checked] = [
      await bough(["build", context, ...options]),
      await bough(["build", context, ...options, "--check"]),
    ];
    for (const { exitCode, stdout, stderr } of [built, checked]) {
      expect(exitCode).toBe(2);
      expect(stdout + stderr).toContain(message);
      expect(stdout + stderr).toMatch(new RegExp(`Dockerfile:${line}\\b`));
      if (options.length === 0) expect(stdout + stderr).toContain("--allow-local-from");
    }
    expect([canary.state(), await listTags()]).toEqual(before);
  });
});

describe("with --allow-local-from, an image in the context", () => {
  test.each([
    "oci:./alpine",
    "oci-archive:./oci.tar",
    "docker-archive:./docker.tar",
    "docker-archive:./docker.tar:app:1",
    "dir:./directory",
  ])("can be the base as %s, and moves no tag", async (from) => {
    const context = contextOf(`FROM ${from}\n`);
    const before = await listTags();
    expect(await bough(["build", context, "--allow-local-from", "--check"])).toMatchObject({ exitCode: 0 });
    const { exitCode, stderr, stdout } = await bough(["build", "-q", "--allow-local-from", context]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    const untagged = (await listTags()).filter((line) => !before.includes(line));
    expect(untagged.filter((line) => !line.startsWith("null "))).toEqual([]);
    expect((await bough(["cat", `${stdout.trim()}:/attacker`])).stdout).toBe("yes");
  });

  test("is not confused with an image at the same path in another context", async () => {
    const contexts = ["one", "two"].map((name) => {
      const context = contextOf("FROM oci:./alpine\n");
      writeRawFiles(join(context, "alpine"), ociFiles(image(name)));
      return context;
    });
    for (const [index, context] of contexts.entries()) {
      const { stdout } = await bough(["build", "-q", "--allow-local-from", context]);
      expect((await bough(["cat", `${stdout.trim()}:/attacker`])).stdout).toBe(["one", "two"][index] ?? "");
    }
  });
});

describe("the tag in a reference", () => {
  const tagged = async (tag: string) =>
    (await listTags()).find((line) => line.startsWith(`${tag} `))?.slice(tag.length + 1);

  test("stays with its image, unless --tag names it", async () => {
    const [before, context] = [await tagged("alpine:latest"), contextOf("")];
    const { stdout, stderr, exitCode } = await bough([
      "images",
      "import",
      `oci:${context}/alpine`,
      "-f",
      "json",
    ]);
    expect(exitCode).toBe(0);
    const { image, tag } = JSON.parse(stdout);
    expect(tag).toBeNull();
    expect(stderr).toContain(
      `alpine:latest stays with ${before}; \`bough tag ${image} alpine:latest\` moves it`,
    );
    expect(await tagged("alpine:latest")).toBe(before as string);
    await bough(["images", "import", `oci:${context}/alpine`, "--tag", "moved:1"]);
    await bough(["images", "import", `oci:${outside}/alpine`, "--tag", "moved:1"]);
    expect(await tagged("moved:1")).toBe(before as string);
  });

  test("is set if no image has it, and FROM finds it", async () => {
    const directory = temporaryDirectory();
    writeRawFiles(join(directory, "fresh"), ociFiles(image("fresh")));
    const { stdout } = await bough(["images", "import", `oci:${directory}/fresh:latest`, "-f", "json"]);
    const { image: uuid, tag } = JSON.parse(stdout);
    expect(tag).toBe("fresh:latest");
    expect((await bough(["build", "-q", contextOf("FROM fresh\n")])).stdout.trim()).toBe(uuid);
    // Again: the tag names this image already.
    const again = await bough(["images", "import", `oci:${directory}/fresh:latest`, "-f", "json"]);
    expect(JSON.parse(again.stdout)).toEqual({ image: uuid, tag: "fresh:latest" });
    expect(again.stderr).not.toContain("stays");
  });
});
