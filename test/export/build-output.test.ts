/** `bough build -o` and `--push`: the outputs of docker buildx build. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readTree } from "../differential/tree.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";

setDefaultTimeout(120_000);

const places = temporaryDirectory();
const home = temporaryDirectory();
const temporary = temporaryDirectory();
let registry: Registry;

const bough = (...words: string[]) =>
  runBough(["--local", ...words], { workingDirectory: places, environment: { BOUGH_HOME: home } });

async function build(...words: string[]) {
  const ended = await bough("build", "context", ...words);
  if (ended.exitCode !== 0) throw new Error(ended.stderr);
  return ended;
}

/** The standard output of a build with this output. */
function buildToStdout(output: string): Buffer {
  const main = join(import.meta.dir, "../../src/main.ts");
  return Bun.spawnSync(["bun", main, "--local", "build", "context", "-o", output], {
    cwd: places,
    env: { ...process.env, BOUGH_HOME: home, TMPDIR: temporary },
    stderr: "ignore",
  }).stdout;
}

function inspect(...words: string[]): { config: unknown; rootfs: { diff_ids: string[] } } {
  const { success, stdout, stderr } = Bun.spawnSync(["skopeo", "inspect", "--config", ...words], {
    cwd: places,
  });
  if (!success) throw new Error(stderr.toString());
  return JSON.parse(stdout.toString());
}

beforeAll(async () => {
  registry = await Registry.start();
  const base = await makeBusyboxLayout(join(places, "base"));
  await bough("images", "import", base, "--tag", "base:1");
  writeFiles(join(places, "context"), {
    Dockerfile: "FROM base:1\nRUN mkdir /made && echo hi > /made/file\n",
  });
});
afterAll(() => registry.stop());

describe("a build writes", () => {
  test.each([
    ["type=oci,dest=image.tar", "oci-archive:image.tar"],
    ["type=oci,dest=layout,tar=false", "oci:layout"],
    ["type=oci,dest=zstd.tar,compression=zstd", "oci-archive:zstd.tar"],
    ["type=docker,dest=docker.tar", "docker-archive:docker.tar"],
    ['type=docker,dest=named.tar,"name=other:2"', "docker-archive:named.tar:other:2"],
  ])("%s", async (output, place) => {
    const { stderr, stdout } = await build("-o", output, "--tag", "app:1", "-q");
    expect(stdout).toMatch(/^[0-9a-f-]{36}\n$/);
    expect(stderr).toBe("");
    expect(inspect(place).rootfs.diff_ids).toHaveLength(2);
  });

  test("an archive that Docker loads under each of its tags", async () => {
    await build("-o", "type=docker,dest=tags.tar", "--tag", "one:1", "--tag", "two");
    const { stdout } = Bun.spawnSync(["tar", "-xOf", join(places, "tags.tar"), "manifest.json"]);
    expect(JSON.parse(stdout.toString())[0].RepoTags).toEqual(["one:1", "two:latest"]);
  });

  test("its files into a directory that has others", async () => {
    mkdirSync(join(places, "local"));
    writeFileSync(join(places, "local/mine"), "");
    await build("--output", "type=local,dest=local");
    await build("-o", "local");
    expect(readFileSync(join(places, "local/made/file"), "utf8")).toBe("hi\n");
    expect(existsSync(join(places, "local/mine"))).toBe(true);
  });

  test("its files with their links, holes, modes and times, each a file of its own", async () => {
    const make = [
      "mkdir -p /t/private && cd /t",
      "dd if=/dev/urandom of=large bs=1M count=1",
      "ln large private/link",
      "ln -s large soft",
      "mkfifo pipe",
      "dd if=/dev/zero of=holes bs=1 count=1 seek=8M",
      "echo x > setuid && chmod 4711 setuid",
      "chmod 700 private && touch -d '2001-02-03 04:05:06' large private",
    ];
    writeFiles(join(places, "trees"), { Dockerfile: `FROM base:1\nRUN ${make.join(" && ")}\n` });
    const { exitCode } = await bough("build", "trees", "-o", "tree", "-o", "type=tar,dest=tree.tar");
    expect(exitCode).toBe(0);
    const { stdout } = Bun.spawnSync(["tar", "-c", "-C", join(places, "tree"), "t"]);
    const written = await readTree(new Blob([stdout]).stream());
    const tree = await readTree(Bun.file(join(places, "tree.tar")).stream());
    expect(written).toEqual(new Map([...tree].filter(([path]) => /^\/t(\/|$)/.test(path))));
    const stats = (name: string) => lstatSync(join(places, "tree/t", name));
    expect(stats("large").ino).toBe(stats("private/link").ino);
    expect(stats("large").nlink).toBe(2);
    expect(stats("private").mode & 0o7777).toBe(0o700);
    expect(stats("large").mtimeMs).toBe(Date.UTC(2001, 1, 3, 4, 5, 6));
    expect(stats("private").mtimeMs).toBe(Date.UTC(2001, 1, 3, 4, 5, 6));
    expect(stats("holes").blocks).toBeLessThan(1000);
  });

  test("an OCI archive and a layout with an entry for each name, as docker and containerd read them", async () => {
    const names = ["--tag", "a:1", "--tag", "host.example/b:2", "--tag", "c"];
    await build(...names, "-o", "type=oci,dest=named.tar", "-o", "type=oci,dest=named,tar=false");
    const entries = (index: string) =>
      (JSON.parse(index) as { manifests: { annotations: Record<string, string> }[] }).manifests.map(
        ({ annotations }) => [
          annotations["io.containerd.image.name"],
          annotations["org.opencontainers.image.ref.name"],
        ],
      );
    const archived = Bun.spawnSync(["tar", "-xOf", "named.tar", "index.json"], { cwd: places });
    const expected = [
      ["docker.io/library/a:1", "1"],
      ["host.example/b:2", "2"],
      ["docker.io/library/c:latest", "latest"],
    ];
    expect(entries(archived.stdout.toString())).toEqual(expected);
    const layout = () => entries(readFileSync(join(places, "named/index.json"), "utf8"));
    expect(layout()).toEqual(expected);
    await build("--tag", "b:1", "--tag", "a:1", "-o", "type=oci,dest=named,tar=false");
    expect(layout().sort()).toEqual([...expected, ["docker.io/library/b:1", "1"]].sort());
    expect(inspect("oci:named:2").rootfs.diff_ids.length).toBeGreaterThan(0);
  });

  test("its files as an archive, to a file or as the only output to standard output", async () => {
    const { stderr } = await build("-o", "type=tar,dest=files.tar");
    expect(stderr).toContain(`[INFO] exported to tar:${places}/files.tar\n`);
    const tree = await readTree(Bun.file(join(places, "files.tar")).stream());
    expect(tree.get("/made/file")?.line).toContain("3 bytes");
    const found = Bun.spawnSync(["tar", "-xOf", "files.tar", "made/file"], { cwd: places });
    expect(found.stdout.toString()).toBe("hi\n");
    expect(await readTree(new Blob([buildToStdout("-")]).stream())).toEqual(tree);
  });

  test.each(["type=oci", "type=docker,dest=-"])(
    "%s to standard output, with the same bytes as to a file",
    async (output) => {
      const [type = ""] = output.split(",");
      await build("-o", `${type},dest=same.tar`);
      expect(readFileSync(join(places, "same.tar")).equals(buildToStdout(output))).toBe(true);
      expect(readdirSync(temporary)).toEqual([]);
    },
  );

  test("only one output to standard output", async () => {
    const { exitCode, stderr } = await bough("build", "context", "-o", "-", "-o", "type=oci");
    expect(stderr).toContain("two outputs can't both go to standard output");
    expect(exitCode).toBe(2);
  });

  test("only one output to an archive", async () => {
    const { exitCode, stderr } = await bough(
      ...["build", "context", "-o", "type=tar,dest=new/one", "-o", "type=oci,dest=new/../new/one"],
    );
    expect(stderr).toMatch(/two outputs can't both be written to \S*new\/one\n/);
    expect(exitCode).toBe(2);
  });

  test("no archive to a terminal", async () => {
    for (const words of [
      ["build", "context", "-o", "-"],
      ["images", "export", "base:1", "docker-archive:-"],
      ["cp", "base:1:/etc", "-"],
    ]) {
      const ended = await runBough(["--local", ...words], {
        workingDirectory: places,
        environment: { BOUGH_HOME: home },
        terminalColumns: 80,
      });
      expect(ended).toMatchObject({ exitCode: 2, stdout: "" });
      expect(ended.stderr).toContain("an archive cannot be written to a terminal");
    }
  });

  test("to several places, and to the registries of its tags", async () => {
    const tags = ["team/app:1", "team/other:2"].map((name) => `${registry.host}/${name}`);
    const named = tags.flatMap((tag) => ["--tag", tag]);
    const { stderr } = await build(...named, "--push", "-o", "type=oci,dest=beside.tar");
    for (const tag of tags) {
      expect(stderr).toContain(`exported to docker://${tag}, sha256:`);
      const archived = inspect(`oci-archive:beside.tar:${tag.slice(-1)}`);
      expect(inspect("--tls-verify=false", `docker://${tag}`)).toEqual(archived);
    }
  });
});

test.each([
  ["type=docker,dest=x,tar=false", "docker load needs an archive"],
  ["type=local,dest=-", "a directory can't go to standard output"],
  ["type=oci,dest=-,tar=false", "a directory can't go to standard output"],
  ["type=sif,dest=x", "type must be oci, docker, tar, local, image or registry"],
  ["type=oci,dest=x,level=3", "unknown field level"],
  ["type=oci,dest=x,compression=lz4", "compression must be gzip, zstd or uncompressed"],
  ["type=oci,dest=x,tar=maybe", "tar must be true or false"],
  ["type=oci,dest", "is not KEY=VALUE"],
  ["type=registry", "no name to push to"],
  ["type=registry,name=app:1", "app:1 does not say which registry to push to"],
  ["type=oci,dest=x,rewrite-timestamp=true", "SOURCE_DATE_EPOCH, which is not set"],
])("-o %s is refused before anything is built", async (output, problem) => {
  const before = readdirSync(places);
  const { exitCode, stderr } = await bough("build", "context", "-o", output);
  expect(stderr).toContain(problem);
  expect(exitCode).toBe(2);
  expect(readdirSync(places)).toEqual(before);
});

describe("a place that can't be written is refused before anything is built, also by --check", () => {
  beforeAll(() => {
    writeFiles(places, {
      "blocked/file": "",
      "blocked/layout/index.json": "{}",
      "blocked/dangling": { link: "nowhere" },
    });
    writeFiles(join(places, "failing"), { Dockerfile: "FROM base:1\nRUN false\n" });
  });

  test.each([
    ["type=oci,dest=blocked", "cannot write the file PLACES/blocked: it is a directory"],
    ["type=tar,dest=/dev/null", "/dev/null is not a regular file"],
    [
      "type=docker,dest=blocked/file/x",
      "cannot write PLACES/blocked/file/x: a part of the path is not a directory",
    ],
    [
      "type=oci,dest=blocked/file/x/y",
      "cannot write PLACES/blocked/file/x/y: a part of the path is not a directory",
    ],
    ["type=tar,dest=blocked/dangling/x", "cannot write PLACES/blocked/dangling/x: no such file or directory"],
    ["type=oci,tar=false,dest=blocked", "PLACES/blocked already exists and is not an empty directory"],
    [
      "type=oci,tar=false,dest=blocked/file/x",
      "cannot write PLACES/blocked/file/x: a part of the path is not a directory",
    ],
    ["type=oci,tar=false,dest=blocked/layout", "PLACES/blocked/layout/index.json lists no images"],
    ["blocked/file", "cannot write the directory PLACES/blocked/file: it is a file"],
    ["blocked/file/x", "cannot write PLACES/blocked/file/x: a part of the path is not a directory"],
  ])("-o %s", async (output, problem) => {
    for (const words of [[], ["--check"]]) {
      const { exitCode, stderr } = await bough("build", "failing", "-o", output, ...words);
      expect(stderr).toContain(`[ERROR] --output: ${problem.replace("PLACES", places)}`);
      expect(exitCode).toBe(2);
    }
  });
});

test.each([
  ["type=oci,dest=new/oci/image.tar", "image.tar"],
  ["type=oci,tar=false,dest=new/layout/image", "image"],
  ["new/local/files", "files"],
])("-o %s makes the missing directories, but not for a failed build", async (output, name) => {
  const directory = join(places, output.replace(/^.*=/, ""), "..");
  await bough("build", "failing", "-o", output);
  await bough("build", "context", "--check", "-o", output);
  expect(existsSync(directory)).toBe(false);
  await build("-o", output);
  expect(readdirSync(directory)).toEqual([name]);
});

test("an image FROM scratch is written without an empty base layer", async () => {
  writeFiles(join(places, "empty"), { Dockerfile: "FROM scratch\nCOPY file /\n", file: "x" });
  const { exitCode, stderr } = await bough("build", "empty", "-o", "type=oci,dest=empty.tar");
  expect(stderr).not.toContain("ERROR");
  expect(exitCode).toBe(0);
  expect(inspect("oci-archive:empty.tar").rootfs.diff_ids).toHaveLength(1);
});

test("the digest of what leaves is in the result, the last event, the metadata and a file of its own", async () => {
  const tag = `${registry.host}/digests:1`;
  const files = ["--metadata-file", "meta.json", "--digest-file", "digest", "--iidfile", "id"];
  const { stdout, stderr } = await build(
    "-f",
    "json",
    "--progress",
    "json",
    "--tag",
    tag,
    "--push",
    ...files,
  );
  const { digest, exported } = JSON.parse(stdout);
  expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/);
  expect(exported).toEqual([
    {
      destination: `docker://${tag}`,
      descriptor: {
        mediaType: "application/vnd.oci.image.manifest.v1+json",
        digest,
        size: expect.any(Number),
      },
      configDigest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      sentBytes: expect.any(Number),
    },
  ]);
  const [last] = stderr.trim().split("\n").slice(-1);
  expect(JSON.parse(last ?? "")).toMatchObject({ type: "finished", digest });
  expect(JSON.parse(readFileSync(join(places, "meta.json"), "utf8"))).toMatchObject({
    "containerimage.config.digest": exported[0].configDigest,
    "containerimage.digest": digest,
    "containerimage.descriptor": exported[0].descriptor,
    "image.name": tag,
  });
  expect(readFileSync(join(places, "digest"), "utf8")).toBe(digest);
  // docker's id of the image, by which commands and FROM find it.
  const id = readFileSync(join(places, "id"), "utf8");
  const manifest = Bun.spawnSync(["skopeo", "inspect", "--raw", "--tls-verify=false", `docker://${tag}`]);
  expect(JSON.parse(manifest.stdout.toString()).config.digest).toBe(id);
  for (const name of [id, digest])
    expect((await bough("-q", "inspect", name)).stdout.trim()).toBe(JSON.parse(stdout).image);
  expect((await bough("run", id, "no-such-program")).stderr).toContain("no-such-program");
  writeFiles(places, { "on-id/Dockerfile": "ARG BASE\nFROM $BASE\nLABEL on=id\n" });
  expect(await bough("build", "on-id", "--docker", "--build-arg", `BASE=${id}`)).toMatchObject({
    exitCode: 0,
  });
  const pushed = await bough("push", tag, "--digestfile", "pushed");
  expect({ exitCode: pushed.exitCode, digest: readFileSync(join(places, "pushed"), "utf8") }).toEqual({
    exitCode: 0,
    digest,
  });
  const useless = await bough("build", "context", "--digest-file", "digest");
  expect(useless).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("--digest-file needs an image that is"),
  });
  const same = await bough("images", "export", tag, "oci-archive:same.tar", "--digest-file", "./same.tar");
  expect(same).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("--digest-file ./same.tar: the image is written there"),
  });
});
