/** `bough build --build-context`: directories, images and layouts in place of stages and images, on the embedded engine. */
import { beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";

const environment: Record<string, string> = { BOUGH_HOME: "" };
/** A layout of one image, which has the tag `latest`. */
let layout: string;
/** A layout of two images, `one` and `two`. */
let layouts: string;
beforeAll(async () => {
  environment.BOUGH_HOME = temporaryDirectory();
  layout = (await makeBusyboxLayout(temporaryDirectory())).replace(/^oci:|:latest$/g, "");
  layouts = temporaryDirectory();
  await expectDone(bough(layouts, "images", "import", `oci:${layout}`, "--tag", "base:1"));
  for (const tag of ["one", "two"]) {
    const context = makeContext(`FROM base:1\nRUN echo ${tag} > /which\n`);
    await expectDone(bough(context, "build", ".", "--tag", `which:${tag}`));
    await expectDone(bough(layouts, "images", "export", `which:${tag}`, `oci:${layouts}:${tag}`));
  }
});

const bough = (workingDirectory: string, ...words: string[]) =>
  runBough(["--local", ...words], { workingDirectory, environment });

async function expectDone(ending: ReturnType<typeof bough>): Promise<string> {
  const { exitCode, stdout, stderr } = await ending;
  expect({ exitCode, stderr: exitCode === 0 ? "" : stderr }).toEqual({ exitCode: 0, stderr: "" });
  return stdout + stderr;
}

function makeContext(dockerfile: string, files: Record<string, FileSpec> = {}): string {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: dockerfile, ...files });
  return context;
}

const library = {
  "lib/a.txt": "a\n",
  "lib/b.md": "b\n",
  "lib/sub/run.sh": { text: "c\n", mode: 0o755 },
  "lib/sub/deep/d": "d\n",
  "lib/link": { link: "sub/run.sh" },
  "lib/away": { link: "../../outside" },
  "lib/empty": "directory/",
} as const satisfies Record<string, FileSpec>;

/** Builds with the given contexts. Returns what the RUNs printed. */
async function build(context: string, contexts: readonly string[], ...words: string[]): Promise<string[]> {
  const options = contexts.flatMap((each) => ["--build-context", each]);
  const log = await expectDone(bough(context, "build", ".", "--progress", "plain", ...options, ...words));
  return [...log.matchAll(/^(?:\[\S+ \d+\/\d+\] )?(> .*)$/gm)].map(([, text = ""]) => text.slice(2));
}

const list = (path: string) => `find ${path} ! -type d -exec stat -c '> %A %u:%g %n' {} + | sort -k4`;

describe("a directory", () => {
  test.each<[title: string, dockerfile: string, printed: string[]]>([
    [
      "has files for COPY --from, owned by root",
      `FROM base:1\nCOPY --from=lib sub /x/\nRUN ${list("/x")}`,
      ["-rw-r--r-- 0:0 /x/deep/d", "-rwxr-xr-x 0:0 /x/run.sh"],
    ],
    [
      "is copied with patterns and the flags of COPY",
      `FROM base:1\nCOPY --from=lib --chown=5:6 --chmod=600 --link --exclude=*.md *.* missing* /x/\nRUN ${list("/x")}`,
      ["-rw------- 5:6 /x/a.txt"],
    ],
    [
      "is copied with parents",
      `FROM base:1\nCOPY --from=lib --parents sub/./deep/d sub/run.sh /x/\nRUN ${list("/x")}`,
      ["-rw-r--r-- 0:0 /x/deep/d", "-rwxr-xr-x 0:0 /x/sub/run.sh"],
    ],
    [
      "keeps links in a directory, and a link as the source is followed",
      `FROM base:1\nCOPY --from=lib / /x/\nCOPY --from=lib link /y\nRUN ${list("/x/link /x/away /y")}`,
      ["lrwxrwxrwx 0:0 /x/away", "lrwxrwxrwx 0:0 /x/link", "-rwxr-xr-x 0:0 /y"],
    ],
    [
      "is mounted, read-only, and stays out of the image",
      "FROM base:1\nRUN --mount=type=bind,from=lib,source=sub,target=/m echo '>' $(cat /m/run.sh /m/deep/d); touch /m/x 2>/dev/null || echo '> refused'\nRUN ls /m 2>/dev/null | sed 's/^/> /'",
      ["c d", "refused"],
    ],
    [
      "replaces a stage of its name, also by number",
      `FROM base:1 AS lib\nRUN false\nFROM base:1\nCOPY --from=0 a.txt /x/\nCOPY --from=LIB b.md /x/\nRUN ${list("/x")}`,
      ["-rw-r--r-- 0:0 /x/a.txt", "-rw-r--r-- 0:0 /x/b.md"],
    ],
    [
      "is the whole root of a stage",
      `FROM lib AS files\nCOPY main.txt /\nFROM base:1\nCOPY --from=files / /x/\nRUN ${list("/x")}`,
      [
        "-rw-r--r-- 0:0 /x/a.txt",
        "lrwxrwxrwx 0:0 /x/away",
        "-rw-r--r-- 0:0 /x/b.md",
        "lrwxrwxrwx 0:0 /x/link",
        "-rw-r--r-- 0:0 /x/main.txt",
        "-rw-r--r-- 0:0 /x/sub/deep/d",
        "-rwxr-xr-x 0:0 /x/sub/run.sh",
      ],
    ],
  ])("%s", async (_, dockerfile, printed) => {
    const context = makeContext(dockerfile, { ...library, "main.txt": "main\n" });
    expect(await build(context, ["lib=lib"])).toEqual(printed);
  });

  test("has its own ignore file, and the build context's does not apply", async () => {
    const text = `FROM base:1\nCOPY . /main/\nCOPY --from=lib . /lib/\nRUN ${list("/main /lib")}`;
    const context = makeContext(text, {
      ".dockerignore": "*\n!own\n",
      own: "",
      "lib/.dockerignore": "kept-here\n",
      "lib/kept-here": "",
      "lib/node_modules/used": "",
    });
    expect(await build(context, ["lib=lib"])).toEqual([
      "-rw-r--r-- 0:0 /lib/.dockerignore",
      "-rw-r--r-- 0:0 /lib/node_modules/used",
      "-rw-r--r-- 0:0 /main/own",
    ]);
  });

  test("that replaces the target is the image, with Docker's configuration of an empty one", async () => {
    const context = makeContext("FROM nowhere.invalid/none AS lib\nENV A=1\nRUN false\n", library);
    await build(context, ["lib=lib"], "--tag", "only:files");
    expect(JSON.parse((await bough(context, "inspect", "only:files", "-f", "json")).stdout).config).toEqual({
      Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
      WorkingDir: "/",
    });
    const { stdout } = await bough(context, "ls", "only:files:/");
    expect(stdout).toContain("a.txt");
  });

  test("is relative to the working directory, not to the build context", async () => {
    const outside = temporaryDirectory();
    writeFiles(outside, { "app/Dockerfile": `FROM base:1\nCOPY --from=lib f /x\nRUN echo '>' $(cat /x)\n` });
    writeFiles(outside, { "lib/f": "beside\n", "app/lib/f": "below\n" });
    const log = await expectDone(bough(outside, "build", "app", "--build-context", "lib=lib"));
    expect(log).toContain("> beside");
  });

  test.each<[string, string, string]>([
    [
      "a missing source",
      "COPY --from=lib none /",
      "no such file or directory in the build context lib (lib): none",
    ],
    [
      "a source that is ignored",
      "COPY --from=lib ignored /",
      "no such file or directory in the build context lib (lib): ignored",
    ],
    [
      "a link that leads out",
      "COPY --from=lib away /",
      "the symbolic link away leads out of the build context lib (lib)",
    ],
    [
      "an ignored mount",
      "RUN --mount=from=lib,source=ignored,target=/m true",
      '"/ignored" is excluded from the build context lib (lib)',
    ],
  ])("%s is an error that names the context and the line", async (_, instruction, message) => {
    const files = { ...library, "lib/ignored": "", "lib/.dockerignore": "ignored\n" };
    const context = makeContext(`FROM base:1\n${instruction}\n`, files);
    const { exitCode, stderr } = await bough(context, "build", ".", "--build-context", "lib=lib");
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain("Dockerfile:2: ");
    expect(stderr).toContain(message);
  });
});

describe("layers", () => {
  const layerOf = (log: string) => /layer:([0-9a-f]+)/.exec(log)?.[1];

  test("do not depend on the context that files come from", async () => {
    const files = { "lib/a": "a\n", "lib/b/c": "c\n" };
    const main = makeContext("FROM base:1\nCOPY lib /x/\nRUN true\n", files);
    const named = makeContext("FROM base:1\nCOPY --from=lib . /x/\nRUN true\n", files);
    const hashOf = async (context: string, ...words: string[]) => {
      await expectDone(bough(context, "build", ".", ...words));
      return layerOf(await expectDone(bough(context, "build", ".", ...words)));
    };
    const hash = await hashOf(main);
    expect(hash).toBeDefined();
    expect(await hashOf(named, "--build-context", "lib=lib")).toBe(hash);
  });

  test("are cached until a file of the directory changes, wherever the directory is", async () => {
    const context = makeContext("FROM base:1\nCOPY --from=lib f /x\nRUN echo '>' $(cat /x)\n", {
      "one/f": "first\n",
      "two/f": "first\n",
    });
    expect(await build(context, ["lib=one"])).toEqual(["first"]);
    expect(await build(context, ["lib=one"])).toEqual([]);
    expect(await build(context, ["lib=two"])).toEqual([]);
    writeFileSync(join(context, "two/f"), "other\n");
    expect(await build(context, ["lib=two"])).toEqual(["other"]);
    expect(await build(context, ["lib=one"])).toEqual([]);
  });
});

describe("an image", () => {
  const which = "FROM docker.io/library/tool:latest\nCOPY --from=tool /which /copied\n";
  const print = "RUN --mount=from=library/tool,target=/m echo '>' $(cat /which /copied /m/which)\n";

  test.each<[value: string, printed: string]>([
    ["docker-image://which:one", "one one one"],
    ["container-image://which:two", "two two two"],
    ["docker://which:two", "two two two"],
    ["oci-layout://LAYOUTS:one", "one one one"],
    ["oci-layout://LAYOUTS@DIGEST-OF-TWO", "two two two"],
  ])("%s replaces the image everywhere", async (value, printed) => {
    const given = value.replace("DIGEST-OF-TWO", digestIn(layouts, "two")).replace("LAYOUTS", layouts);
    expect(await build(makeContext(which + print), [`tool=${given}`])).toEqual([printed]);
  });

  test("replaces a stage, whose instructions are not run", async () => {
    const text = "FROM base:1 AS tool\nRUN false\nFROM tool\nRUN echo '>' $(cat /which)\n";
    expect(await build(makeContext(text), ["tool=docker-image://which:one"])).toEqual(["one"]);
  });

  test("is only replaced by its whole name", async () => {
    const text = "FROM which:one\nRUN echo '>' $(cat /which)\n";
    expect(await build(makeContext(text), ["which=docker-image://which:two"])).toEqual(["one"]);
  });

  test("of a layout with one image needs no tag", async () => {
    const text = "FROM tool\nRUN echo '> done'\n";
    expect(await build(makeContext(text), [`tool=oci-layout://${layout}`])).toEqual(["done"]);
  });

  test("given last counts", async () => {
    const contexts = ["tool=docker-image://which:one", "library/tool:latest=docker-image://which:two"];
    expect(await build(makeContext("FROM tool\nRUN echo '>' $(cat /which)\n"), contexts)).toEqual(["two"]);
  });
});

test("an address is a context for COPY, mounts and FROM", async () => {
  using server = Bun.serve({ port: 0, fetch: () => new Response("fetched\n") });
  const text =
    "FROM src AS files\nFROM base:1\nCOPY --from=src context /x\nCOPY --from=files / /y\nRUN --mount=from=src,target=/m echo '>' $(cat /x /y/context /m/context)\n";
  expect(await build(makeContext(text), [`src=${server.url}a`])).toEqual(["fetched fetched fetched"]);
});

test("a base image's triggers take from the context, even if a stage has its name", async () => {
  const triggers =
    "FROM base:1\nONBUILD COPY --from=lib a.txt /x\nONBUILD RUN --mount=from=lib,target=/m cp /m/b.md /y\n";
  await expectDone(bough(makeContext(triggers), "build", ".", "--docker", "--tag", "triggers:1"));
  const text = "FROM base:1 AS lib\nFROM triggers:1\nRUN echo '>' $(cat /x /y)\n";
  expect(await build(makeContext(text, library), ["lib=lib"])).toEqual(["a b"]);
});

test("a directory goes with a Dockerfile that has no build context", async () => {
  const text = "FROM base:1\nCOPY --from=lib a.txt /x\nRUN echo '>' $(cat /x)\n";
  const { exitCode, stderr } = await runBough(["--local", "build", "-", "--build-context", "lib=lib"], {
    ...{ workingDirectory: makeContext("", library), environment },
    stdin: text,
  });
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.stringContaining("> a") });
});

test("a context that nothing uses is silently ignored", async () => {
  const context = makeContext("FROM base:1\nRUN true\n", library);
  const log = await expectDone(
    bough(context, "build", ".", "--build-context", "lib=lib", "--build-context", "scratch=lib"),
  );
  expect(log).not.toContain("WARN");
  expect(log).not.toContain("lib");
});

test.each<[given: string, message: string]>([
  ["lib", '--build-context takes NAME=VALUE, not "lib"'],
  [
    "https://me:secret@host.invalid/a.git",
    '--build-context takes NAME=VALUE, not "https://host.invalid/a.git"',
  ],
  [
    "https://me:secret@host.invalid/a.git?ref=v1",
    '--build-context takes NAME=VALUE, not "https://host.invalid/a.git?ref=v1"',
  ],
  ["=lib", '--build-context takes NAME=VALUE, not "=lib"'],
  ["lib=", '--build-context takes NAME=VALUE, not "lib="'],
  ["Lib=lib", "--build-context Lib: invalid name"],
  ["0=lib", "--build-context 0: a number means a stage"],
  ["lib=none", "--build-context lib=none: there is no such directory"],
  ["lib=Dockerfile", "--build-context lib=Dockerfile: this is not a directory"],
  ["lib=docker-image://", "--build-context lib=docker-image://: not an image reference"],
  [
    "lib=docker-image://oci:./lib",
    "--build-context lib=docker-image://oci:./lib: this is not an image's name",
  ],
  ["lib=oci-layout://lib", "index.json: no such file or directory"],
  ["lib=oci-layout://LAYOUTS:three", "there is no image three in the layout; it has one, two"],
  ["lib=oci-layout://LAYOUTS", "there is no image latest in the layout; it has one, two"],
  ["lib=-", "--build-context lib=-: there is no such directory"],
  [
    "lib=https://me:secret@host.invalid/a.git?what=1",
    '--build-context lib=https://host.invalid/a.git?what=1: unexpected query "what"',
  ],
  ["lib=https://me:secret@host:99999/a.git", "host:99999/a.git: invalid address"],
  ["lib=http://me:secret@host:99999/a.tar", "host:99999/a.tar: invalid address"],
  ["lib=ftp://me:secret@host.invalid/a", "--build-context lib=ftp://host.invalid/a: unknown kind of context"],
  ["lib=target:base", "not supported: --build-context lib=target:base: a target"],
  ["lib=s3://bucket/a", "--build-context lib=s3://bucket/a: unknown kind of context"],
])("--build-context %s is refused before anything runs, also by --check", async (given, message) => {
  const context = makeContext("FROM base:1\nRUN echo ran\n", library);
  const words = ["build", ".", "--build-context", given.replace("LAYOUTS", layouts)];
  for (const more of [[], ["--check"]]) {
    const { exitCode, stdout, stderr } = await bough(context, ...words, ...more);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("secret");
  }
});

test("a layout is not read for a service elsewhere", async () => {
  const words = ["--url", "http://localhost:1", "--token", "t", "build", ".", "--build-context"];
  const { exitCode, stderr } = await runBough([...words, `lib=oci-layout://${layout}`], {
    workingDirectory: makeContext("FROM lib\n"),
    environment,
  });
  expect(exitCode).toBe(2);
  expect(stderr).toContain("the service can't read files of this machine");
});

test("a Dockerfile may name the layout of the command line, and no other one", async () => {
  const context = makeContext(`FROM oci:${layouts}:two\nRUN true\n`);
  const words = ["build", ".", "--build-context", `tool=oci-layout://${layouts}:one`];
  const { exitCode, stderr } = await bough(context, ...words);
  expect(exitCode).toBe(2);
  expect(stderr).toContain("is not allowed: it names files of this machine");
});

test("an invalid ignore file of a directory is an error", async () => {
  const context = makeContext("FROM base:1\n", { "lib/.dockerignore": "[\n" });
  const { exitCode, stderr } = await bough(context, "build", ".", "--build-context", "lib=lib");
  expect(exitCode).toBe(2);
  expect(stderr).toContain("lib/.dockerignore");
});

function digestIn(directory: string, tag: string): string {
  const { manifests } = JSON.parse(readFileSync(join(directory, "index.json"), "utf8"));
  const found = manifests.find(
    (each: { annotations: Record<string, string> }) =>
      each.annotations["org.opencontainers.image.ref.name"] === tag,
  );
  return found.digest;
}
