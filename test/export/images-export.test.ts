/** Images that are exported from the engine, read by other programs: skopeo, umoci, buildah, podman, Docker, and bough. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { readTree, type Tree } from "../differential/tree.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { startDocker } from "../support/docker.ts";
import { writeFiles } from "../support/files.ts";
import { ociFiles, writeRawFiles } from "../support/image-bytes.ts";
import { problemsOfArchive, problemsOfLayout } from "../support/image-spec.ts";
import { Registry } from "../support/registry.ts";
import { tarOf } from "../support/tar-bytes.ts";

setDefaultTimeout(120_000);

const places = temporaryDirectory();
const home = temporaryDirectory();
let base: string;
let tree: Tree;
let registry: Registry;

/** Special contents of layers: deletions, replaced directories, links, pipes, devices, long names, times. */
const dockerfile = [
  "FROM base:1",
  "RUN mkdir -p /a/b/c /gone && echo x > /a/b/c/x && echo y > /a/y && ln /a/y /a/z && mkfifo /a/pipe && ln -s y /a/link",
  "RUN rm -r /a/b && mkdir -p /a/b && echo new > /a/b/new && mknod /a/device c 5 300 && rm -r /gone && echo file > /gone",
  "RUN rm /etc/group && chown 7:3000000 /a/y && chmod 4711 /a/y && touch -d @5000000000 /a/late && touch -d @1 /a/early",
  `RUN echo long > /a/${"n".repeat(150)} && ln -s ${"t".repeat(150)} /a/long && mkdir -p /a/${"d".repeat(120)}/ä && chmod 700 /root`,
  // Enough gzip members (one for each block) for several threads.
  "RUN seq 900000 > /a/large",
  "RUN printf '\\376' > \"/a/$(printf 'odd\\377')\"",
].join("\n");

const inHome = (own: string, words: readonly string[], environment: Record<string, string> = {}) =>
  runBough(["--local", "-q", ...words], {
    workingDirectory: places,
    environment: { BOUGH_HOME: own, ...environment },
  });

async function bough(...words: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await inHome(home, words);
  if (exitCode !== 0) throw new Error(`bough ${words.join(" ")}: ${stderr}`);
  return stdout.trim();
}

function sh(...command: string[]): string {
  const { success, stdout, stderr } = Bun.spawnSync(command, { cwd: places, stdin: "ignore" });
  if (!success) throw new Error(`${command.join(" ")}: ${stderr}`);
  return stdout.toString();
}

async function treeOf(own: string, image: string): Promise<Tree> {
  const file = `${crypto.randomUUID()}.tar`;
  const { exitCode, stderr } = await inHome(own, ["images", "export", image, `tar:${file}`]);
  if (exitCode !== 0) throw new Error(stderr);
  return readTree(Bun.file(join(places, file)).stream());
}

beforeAll(async () => {
  registry = await Registry.start();
  base = await makeBusyboxLayout(join(places, "base"), {
    tag: "1",
    environment: ["PATH=/bin", "A=b"],
    configuration: { User: "7", Labels: { a: "b" } },
  });
  await bough("images", "import", base, "--tag", "base:1");
  writeFiles(join(places, "context"), {
    Dockerfile: dockerfile.replace("FROM base:1", "FROM base:1\nUSER root"),
  });
  writeFiles(join(places, "runs"), {
    Dockerfile:
      'FROM base:1\nUSER root\nRUN mkdir /srv\nUSER 7\nWORKDIR /srv\nCMD ["sh", "-c", "echo $(id -u) $A $PWD"]\n',
  });
  await bough("build", "context", "--tag", "app:dev");
  tree = await treeOf(home, "app:dev");
});

describe("an image that is exported and imported again has the same files", () => {
  test.each([
    ["oci:layout:dev", []],
    ["oci-archive:layout.tar:dev", []],
    ["docker-archive:docker.tar", []],
    ["dir:directory", []],
    ["oci:zstd:1", ["--compression", "zstd"]],
    ["oci:plain:1", ["--compression", "none"]],
    ["docker://REGISTRY/app:1", []],
  ])("%s", async (given, options) => {
    const destination = given.replace("REGISTRY", registry.host);
    const digest = await bough("images", "export", "app:dev", destination, ...options);
    expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    const [kind, path = ""] = destination.split(":");
    if (kind === "oci") expect(problemsOfLayout(join(places, path))).toEqual([]);
    if (kind === "oci-archive")
      expect(problemsOfArchive(join(places, path), temporaryDirectory())).toEqual([]);
    const elsewhere = temporaryDirectory();
    const place = destination.replace(/^([a-z-]+:)(?!\/\/)/, `$1${places}/`);
    const { exitCode, stderr } = await inHome(elsewhere, ["images", "import", place, "--tag", "back:1"]);
    expect(stderr).toBe("");
    expect(exitCode).toBe(0);
    expect(await treeOf(elsewhere, "back:1")).toEqual(tree);
  });

  test("rootfs:", async () => {
    await bough("images", "export", "app:dev", "rootfs:root");
    const archive = Bun.spawn(
      [
        "tar",
        "-c",
        "--format=posix",
        "--numeric-owner",
        "--xattrs",
        "--xattrs-include=*",
        "-C",
        `${places}/root`,
        ".",
      ],
      { stdout: "pipe" },
    );
    const found = new Map(await readTree(archive.stdout));
    // An archive of bough, like one of docker, has no entry for the root.
    expect(found.delete("/")).toBe(true);
    expect(found).toEqual(new Map(tree));
  });

  test("tar:-", async () => {
    const { stdout } = Bun.spawnSync(
      ["bun", "src/main.ts", "--local", "images", "export", "app:dev", "tar:-"],
      {
        cwd: join(import.meta.dir, "../.."),
        env: { ...process.env, BOUGH_HOME: home },
        stderr: "ignore",
      },
    );
    expect(await readTree(new Blob([stdout]).stream())).toEqual(tree);
  });
});

describe("other programs read it", () => {
  test("skopeo reads its configuration, and finds all layers", async () => {
    await bough("images", "export", "app:dev", "oci:for-skopeo:dev");
    const image = JSON.parse(sh("skopeo", "inspect", "--config", "oci:for-skopeo:dev"));
    expect(image).toMatchObject({ os: "linux", config: { Env: ["PATH=/bin", "A=b"], Labels: { a: "b" } } });
    expect(image.rootfs.diff_ids).toHaveLength(7);
    const withLayer = image.history.filter((line: { empty_layer?: boolean }) => line.empty_layer !== true);
    expect(withLayer).toHaveLength(7);
    expect(image.history.at(-1)).toMatchObject({ created: image.created, comment: "buildkit.dockerfile.v0" });
  });

  test("umoci unpacks it", async () => {
    await bough("images", "export", "app:dev", "oci:for-umoci:dev");
    sh("umoci", "raw", "unpack", "--image", "for-umoci:dev", "unpacked");
    expect(readdirSync(join(places, "unpacked/a/b"))).toEqual(["new"]);
    expect(existsSync(join(places, "unpacked/etc/group"))).toBe(false);
    expect(sh("stat", "-c", "%u %g %a %h", "unpacked/a/y").trim()).toBe("7 3000000 4711 1");
    expect(sh("tail", "-n", "1", "unpacked/a/large")).toBe("900000\n");
  });

  test("buildah starts from it", async () => {
    await bough("images", "export", "app:dev", "oci-archive:for-buildah.tar:dev");
    const storage = [
      "--root",
      join(places, "storage"),
      "--runroot",
      join(places, "run"),
      "--storage-driver",
      "vfs",
    ];
    const container = sh("buildah", ...storage, "from", "--quiet", "oci-archive:for-buildah.tar").trim();
    const root = sh("buildah", ...storage, "mount", container).trim();
    expect(readdirSync(join(root, "a/b"))).toEqual(["new"]);
    expect(existsSync(join(root, "etc/group"))).toBe(false);
    expect(sh("tail", "-n", "1", join(root, "a/large"))).toBe("900000\n");
    sh("buildah", ...storage, "umount", container);
    sh("buildah", ...storage, "rm", container);
  });

  test("podman reads both archives", async () => {
    await bough("images", "export", "app:dev", "oci-archive:for-podman.tar:dev");
    await bough("images", "export", "app:dev", "docker-archive:for-podman-load.tar");
    // podman allows at most 50 characters.
    const runRoot = temporaryDirectory("run-");
    const podman = (...words: string[]) =>
      sh(
        ...["podman", "--root", join(places, "podman"), "--runroot", runRoot],
        ...["--tmpdir", join(places, "podman-state"), "--storage-driver", "vfs", ...words],
      ).trim();
    const [pulled, loaded] = [
      podman("pull", "--quiet", "oci-archive:for-podman.tar"),
      podman("load", "--input", "for-podman-load.tar"),
    ];
    expect(loaded).toContain("localhost/app:dev");
    for (const image of [pulled, "localhost/app:dev"]) {
      const config = podman("image", "inspect", "--format", "{{json .Config}}", image);
      expect(JSON.parse(config)).toMatchObject({ Env: ["PATH=/bin", "A=b"], Labels: { a: "b" } });
    }
  });

  test("Docker loads it, with all its files and under its name", async () => {
    await bough("images", "export", "app:dev", "docker-archive:for-docker.tar");
    const docker = await startDocker(join(temporaryDirectory(), "docker"));
    try {
      await docker.load(join(places, "for-docker.tar"));
      const loaded = await docker.readImage("app:dev");
      // Docker adds some files to its exports, among them a device.
      const own = [...tree].filter(
        ([path]) => !/^\/(dev|etc|proc|sys)(\/|$)|^\/$|^\/\.dockerenv$/.test(path),
      );
      expect(new Map(own.map(([path]) => [path, loaded.get(path)?.line]))).toEqual(
        new Map(own.map(([path, { line }]) => [path, line])),
      );
      expect(loaded.has("/etc/group")).toBe(false);
      expect(await docker.run("app:dev", "cat", "/a/b/new")).toBe("new\n");
      // Layers from a registry are compressed.
      await bough("push", "app:dev", `${registry.host}/runs:1`);
      expect(await docker.run(`${registry.host}/runs:1`, "tail", "-n", "1", "/a/large")).toBe("900000\n");
      // The image's command, run as its user.
      await bough("build", "runs", "--docker", "-o", "type=docker,dest=runs.tar", "--tag", "runs:1");
      await docker.load(join(places, "runs.tar"));
      expect(await docker.run("runs:1")).toBe("7 b /srv\n");
      expect((await docker.inspect("app:dev")).Config).toMatchObject({
        Env: ["PATH=/bin", "A=b"],
        Labels: { a: "b" },
      });
    } finally {
      await docker.close();
    }
  });
});

test("the check of layouts notices a layout that does not match the specification", async () => {
  await bough("images", "export", "base:1", "oci:damaged:1");
  const index = join(places, "damaged/index.json");
  const { manifests, ...rest } = JSON.parse(readFileSync(index, "utf8"));
  const [{ size: _, ...first }] = manifests;
  writeFileSync(index, JSON.stringify({ ...rest, manifests: [first] }));
  expect(problemsOfLayout(join(places, "damaged"))[0]).toBe("index.json: $.manifests[0].size is missing");
});

describe("the same image has the same bytes", () => {
  test.each(["oci-archive:%.tar:1", "docker-archive:%.tar:app:1", "tar:%.tar"])("%s", async (destination) => {
    const [kind] = destination.split(":");
    const files = ["first", "second"].map((name) => `${kind}-${name}`);
    for (const file of files) await bough("images", "export", "app:dev", destination.replace("%", file));
    const [first, second] = files.map((file) => readFileSync(join(places, `${file}.tar`)));
    expect(first?.equals(second ?? Buffer.alloc(0))).toBe(true);
  });

  test("if it is built twice in two places, with SOURCE_DATE_EPOCH", async () => {
    const digests: string[] = [];
    for (const name of ["one", "two"]) {
      const own = temporaryDirectory();
      const at = { SOURCE_DATE_EPOCH: "1700000000" };
      await inHome(own, ["images", "import", base, "--tag", "base:1"]);
      await inHome(own, ["build", "context", "--tag", "app:dev"]);
      const words = ["images", "export", "app:dev", `oci:clamped-${name}:1`, "--rewrite-timestamp"];
      digests.push((await inHome(own, words, at)).stdout);
    }
    expect(digests[0]).toMatch(/^sha256:/);
    expect(digests[1]).toBe(digests[0] ?? "");
    const { created } = JSON.parse(sh("skopeo", "inspect", "--config", "oci:clamped-one:1"));
    expect(created).toBe("2023-11-14T22:13:20Z");
  });
});

describe("a destination", () => {
  test("that is a layout keeps its other images", async () => {
    await bough("images", "export", "app:dev", "oci:shared:app");
    const image = await bough("images", "export", "base:1", "oci:shared:base");
    await bough("images", "export", "base:1", "oci:shared:base");
    const index = JSON.parse(readFileSync(join(places, "shared/index.json"), "utf8"));
    expect(index.manifests).toHaveLength(2);
    expect(index.manifests[1].digest).toBe(image);
    expect(sh("skopeo", "inspect", "--format", "{{.Digest}}", "oci:shared:base").trim()).toBe(image);
    sh("skopeo", "inspect", "oci:shared:app");
  });

  test.each(["oci:full", "dir:full", "rootfs:full"])(
    "that contains other files is not changed: %s",
    async (place) => {
      mkdirSync(join(places, "full"), { recursive: true });
      writeFileSync(join(places, "full/mine"), "");
      const { exitCode, stderr } = await inHome(home, ["images", "export", "app:dev", place]);
      expect(stderr).toContain("full already exists and is not an empty directory");
      expect(exitCode).toBe(1);
      expect(readdirSync(join(places, "full"))).toEqual(["mine"]);
    },
  );

  test.each([
    "oci:stopped",
    "oci-archive:stopped.tar",
    "docker-archive:stopped.tar",
    "dir:stopped",
    "rootfs:stopped",
    "tar:stopped.tar",
  ])("has no files of an interrupted export: %s", async (place) => {
    const directory = temporaryDirectory();
    const interruption = new AbortController();
    const ended = await runBough(["--local", "images", "export", "app:dev", place], {
      workingDirectory: directory,
      environment: { BOUGH_HOME: home },
      signal: interruption.signal,
      onStderr: (text) => {
        if (text.includes("exporting")) interruption.abort(new Error("interrupted"));
      },
    });
    expect(ended.exitCode).not.toBe(0);
    expect(readdirSync(directory)).toEqual([]);
  });

  test.each(["tar", "oci", "oci-archive", "dir", "rootfs"])("can't be below a file: %s", async (kind) => {
    const { exitCode, stderr } = await inHome(home, ["images", "export", "app:dev", `${kind}:/etc/passwd/x`]);
    expect(stderr).toBe("[ERROR] cannot write /etc/passwd/x: a part of the path is not a directory\n");
    expect(exitCode).toBe(1);
  });

  test("may have the longest name that a file can have", async () => {
    const name = "\u597d".repeat(85);
    await bough("images", "export", "app:dev", `tar:${name}`);
    expect(lstatSync(join(places, name)).size).toBeGreaterThan(0);
  });

  test("that is a device stays one, and a link stays a link", async () => {
    const { exitCode, stderr } = await inHome(home, ["images", "export", "app:dev", "tar:/dev/null"]);
    expect(stderr).toContain("/dev/null is not a regular file");
    expect(exitCode).toBe(1);
    writeFileSync(join(places, "led-to.tar"), "");
    symlinkSync("led-to.tar", join(places, "link.tar"));
    await bough("images", "export", "app:dev", "tar:link.tar");
    expect(lstatSync(join(places, "link.tar")).isSymbolicLink()).toBe(true);
    expect(lstatSync(join(places, "led-to.tar")).size).toBeGreaterThan(0);
  });

  test.each([
    ["oci", "invalid destination"],
    ["ostree:/x", "invalid destination"],
    ["docker:///x", "is not a place in a registry"],
    ["oci:x:a b", "is not a valid image name"],
  ])("must be valid: %s", async (place, problem) => {
    const { exitCode, stderr } = await inHome(home, ["images", "export", "app:dev", place]);
    expect(stderr).toContain(problem);
    expect(exitCode).toBe(2);
  });
});

afterAll(async () => {
  await registry?.stop();
  Bun.spawnSync(["chmod", "-R", "u+rwX", places]);
});

test("an image with more layers than Docker loads is exported with a warning", async () => {
  const layers = Array.from({ length: 126 }, (_, index) => tarOf([{ name: `f${index}`, content: "" }]));
  const layout = writeRawFiles(temporaryDirectory(), ociFiles({ layers }));
  await bough("images", "import", `oci:${layout}:latest`, "--tag", "deep:1");
  const words = ["--local", "images", "export", "deep:1", "oci:deep:1", "--compression", "none"];
  const exported = await runBough(words, { workingDirectory: places, environment: { BOUGH_HOME: home } });
  expect(exported.exitCode).toBe(0);
  expect(exported.stderr).toContain(
    "[WARN] the image has 126 layers, and Docker loads none with more than 125",
  );
});
