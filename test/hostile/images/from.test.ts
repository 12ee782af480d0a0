/** Dockerfiles that name images on the machine of whoever builds them, and the tags that a build must not touch. */
import { beforeAll, describe, expect, test } from "bun:test";
import { symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { runBough, temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { archiveOf, dockerFiles, ociFiles, skopeoFiles, writeRawFiles } from "../../support/image-bytes.ts";
import { tarOf } from "../../support/tar-bytes.ts";
import { type Canary, makeCanary } from "../canary.ts";

const environment = { BOUGH_HOME: "" };
/** Of nothing but a file; `attacker` says which. */
const image = (attacker = "yes") => ({ layers: [tarOf([{ name: "attacker", content: attacker }])] });
let canary: Canary;
/** Beside the contexts, and so none of their files. */
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

/** A context with an image in each format, and links out of it. */
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

describe("an image on the machine is refused, by the build and its check alike:", () => {
  const allowed = ["--allow-local-from"];

  test.each<[string, string, string[], number, string]>([
    ["a layout", "FROM oci:./alpine", [], 1, "names files of this machine"],
    ["an archive", "FROM oci-archive:./oci.tar", [], 1, "names files of this machine"],
    ["what docker save wrote", "FROM docker-archive:./docker.tar", [], 1, "names files of this machine"],
    ["a directory", "FROM dir:./directory", [], 1, "names files of this machine"],
    ["an absolute path", "FROM oci:/etc", [], 1, "names files of this machine"],
    ["one out of a variable", "ARG BASE=oci:./alpine\nFROM ${BASE}", [], 2, "names files of this machine"],
    ["one in a later stage", "FROM alpine\nFROM oci:./alpine AS two", [], 2, "names files of this machine"],
    ["above the context", "FROM oci:../alpine", allowed, 1, "cannot read"],
    ["beside the context", "FROM oci:OUTSIDE/layout", allowed, 1, "leads out of the build context"],
    [
      "with .. on its way",
      "FROM oci:./alpine/../../OUTNAME/layout",
      allowed,
      1,
      "leads out of the build context",
    ],
    ["through a link", "FROM oci:./link", allowed, 1, "leads out of the build context"],
    [
      "through a directory that is a link",
      "FROM oci:./up/layout",
      allowed,
      1,
      "leads out of the build context",
    ],
    ["the machine's root", "FROM dir:/", allowed, 1, "leads out of the build context"],
    ["what is not there", "FROM oci:./none", allowed, 1, "no such file or directory"],
    [
      "Docker's store",
      "FROM docker-daemon:app:1",
      allowed,
      1,
      "importing from docker-daemon: is not supported",
    ],
    [
      "podman's store",
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
    ["any archive at all", "FROM tarball:./oci.tar", allowed, 1, "importing from tarball: is not supported"],
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

describe("with --allow-local-from an image below the context", () => {
  test.each([
    "oci:./alpine",
    "oci-archive:./oci.tar",
    "docker-archive:./docker.tar",
    "docker-archive:./docker.tar:app:1",
    "dir:./directory",
  ])("is built from as %s, and moves no tag", async (from) => {
    const context = contextOf(`FROM ${from}\n`);
    const before = await listTags();
    expect(await bough(["build", context, "--allow-local-from", "--check"])).toMatchObject({ exitCode: 0 });
    const { exitCode, stderr, stdout } = await bough(["build", "-q", "--allow-local-from", context]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    const untagged = (await listTags()).filter((line) => !before.includes(line));
    expect(untagged.filter((line) => !line.startsWith("null "))).toEqual([]);
    expect((await bough(["cat", `${stdout.trim()}:/attacker`])).stdout).toBe("yes");
  });

  test("is another one in every context", async () => {
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

describe("a tag that an image has", () => {
  const tagged = async (tag: string) =>
    (await listTags()).find((line) => line.startsWith(`${tag} `))?.slice(tag.length + 1);

  test("stays where it is, unless it is asked for by name", async () => {
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

  test("is free: the reference's own is set, and found by FROM", async () => {
    const directory = temporaryDirectory();
    writeRawFiles(join(directory, "fresh"), ociFiles(image("fresh")));
    const { stdout } = await bough(["images", "import", `oci:${directory}/fresh:latest`, "-f", "json"]);
    const { image: uuid, tag } = JSON.parse(stdout);
    expect(tag).toBe("fresh:latest");
    expect((await bough(["build", "-q", contextOf("FROM fresh\n")])).stdout.trim()).toBe(uuid);
    // Once more, where it names this very image.
    const again = await bough(["images", "import", `oci:${directory}/fresh:latest`, "-f", "json"]);
    expect(JSON.parse(again.stdout)).toEqual({ image: uuid, tag: "fresh:latest" });
    expect(again.stderr).not.toContain("stays");
  });
});
