/** `bough build --build-context NAME=ADDRESS`: git repositories, and files by HTTP. */
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { openKeptContexts } from "../../src/cli/contexts/kept-contexts.ts";
import { systemClock } from "../../src/clock.ts";
import { BoughError } from "../../src/errors.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { type FetchingBuilds, startFetchingBuilds } from "../support/fetching-builds.ts";
import { writeFiles } from "../support/files.ts";
import {
  commitTime,
  makeTemplate,
  type RepositoriesTemplate,
  type Repository,
  withoutObjects,
} from "../support/git-server.ts";
import { tarOf } from "../support/tar-bytes.ts";

let template: RepositoriesTemplate;
let root: string;
let app: Repository;
let builds: FetchingBuilds;
let build: FetchingBuilds["build"];
let kept: FetchingBuilds["kept"];

const copyAll = "FROM base:1\nCOPY --from=src . /x\nRUN make\n";

beforeAll(() => {
  template = makeTemplate({
    ".dockerignore": "foo\n",
    foo: "first\n",
    "run.sh": { text: "#!/bin/sh\n", mode: 0o755 },
    "sub/bar": "bar\n",
  });
});
beforeEach(async () => {
  ({ root, app } = template.copy());
  builds = await startFetchingBuilds();
  ({ build, kept } = builds);
  writeFiles(builds.directory, { Dockerfile: copyAll, ".dockerignore": "*\n" });
});
afterEach(() => builds.close());

const serve = (options?: Parameters<FetchingBuilds["serve"]>[1]) => builds.serve(root, options);
const buildFrom = (
  address: string,
  words: readonly string[] = [],
  options?: Parameters<typeof build>[1],
): ReturnType<typeof build> => build([".", "--build-context", `src=${address}`, ...words], options);

const ignore = { "/x/.dockerignore": "foo\n" };
const firstFiles = { ...ignore, "/x/foo": "first\n", "/x/run.sh": "#!/bin/sh\n", "/x/sub/bar": "bar\n" };
const gitmodules = { "/x/.gitmodules": expect.stringContaining("library.git") };

describe("a repository", () => {
  test.each([
    [
      "the default branch, with submodules",
      "",
      { ...firstFiles, ...gitmodules, "/x/foo": "latest\n", "/x/module/lib.txt": "library\n" },
    ],
    ["without submodules", "?submodules=0", { ...firstFiles, ...gitmodules, "/x/foo": "latest\n" }],
    ["a tag", "#v1", firstFiles],
    ["a directory", "#v1:sub", { "/x/bar": "bar\n" }],
    ["a directory by query", "?tag=v1&subdir=sub", { "/x/bar": "bar\n" }],
  ])("%s", async (_, rest, expected) => {
    const { exitCode, stderr, texts } = await buildFrom(`${serve().url}/app.git${rest}`);
    expect({ exitCode, stderr: exitCode === 0 ? "" : stderr, texts }).toEqual({
      exitCode: 0,
      stderr: "",
      texts: expected,
    });
  });

  test("has no .git, except by its address", async () => {
    const { url } = serve();
    const argument = ["--build-arg", "BUILDKIT_CONTEXT_KEEP_GIT_DIR=1"];
    const { texts } = await buildFrom(`${url}/app.git#v1`, argument);
    expect(texts).toEqual(firstFiles);
    expect((await buildFrom(`${url}/app.git?keep-git-dir=1`)).texts).toHaveProperty(["/x/.git/HEAD"]);
  });

  test("has root's files, with the commit's modes and times; its ignore file does not apply", async () => {
    const { owners, stderr } = await buildFrom(`${serve().url}/app.git#v1`);
    expect(owners).toContain("/x/run.sh 0:0 0755");
    expect(statSync(join(kept()[0] ?? "", "tree/foo")).mtimeMs).toBe(commitTime * 1000);
    expect(stderr).toContain(".dockerignore is not applied to the build context src at ");
  });

  test("is fetched once, for all instructions that need it", async () => {
    writeFiles(builds.directory, {
      Dockerfile:
        "FROM base:1 AS one\nCOPY --from=src foo /one\nRUN one\nFROM base:1\nCOPY --from=one /one /one\nCOPY --from=src sub /x\nRUN --mount=from=src,source=foo,target=/m make\n",
    });
    const { requests, url } = serve();
    const { exitCode, stderr } = await buildFrom(`${url}/app.git`);
    expect(exitCode).toBe(0);
    expect(stderr.match(/fetching /g)).toHaveLength(1);
    expect(requests.filter((line) => line === "GET /app.git/info/refs")).toHaveLength(2);
  });

  test("is not fetched for a stage that is not built", async () => {
    writeFiles(builds.directory, {
      Dockerfile: `${copyAll}FROM src AS other\nFROM base:1\nRUN make\n`,
    });
    const { requests, url } = serve();
    for (const words of [[], ["--check"]])
      expect((await buildFrom(`${url}/app.git`, words)).exitCode).toBe(0);
    expect(requests).toEqual([]);
    expect(kept()).toEqual([]);
  });

  test("a second build asks for the commit, and runs nothing if it is the same", async () => {
    const server = serve();
    await buildFrom(`${server.url}/app.git`);
    server.requests.length = 0;
    const again = await buildFrom(`${server.url}/app.git`);
    expect(again.stderr).toContain(" is known) ");
    expect(again.stderr).toContain("1 of 1 layer cached");
    expect(server.requests).toEqual(["GET /app.git/info/refs", "POST /app.git/git-upload-pack"]);
    app.commit({ foo: "another\n" });
    expect((await buildFrom(`${server.url}/app.git`)).texts).toMatchObject({ "/x/foo": "another\n" });
  });

  test("--explain names a file that has changed by its path in the image, not in bough's state", async () => {
    const { url } = serve();
    await buildFrom(`${url}/app.git#v1:sub`);
    app.commit({ "sub/bar": "another\n" });
    const { stderr } = await buildFrom(`${url}/app.git#main:sub`, ["--explain"]);
    expect(stderr).toContain("not cached: line 3, RUN make: /x/bar has changed: sha256 ");
  });

  test("a local directory with the name of an address is used instead", async () => {
    mkdirSync(join(builds.directory, "git@host:x"));
    writeFiles(builds.directory, { "git@host:x/mine": "mine\n" });
    expect((await buildFrom("git@host:x")).texts).toEqual({ "/x/mine": "mine\n" });
  });

  test.each([
    ["as a token", "x-access-token:t0k3n", "", ["--secret", "id=GIT_AUTH_TOKEN,env=GIVEN"]],
    ["in the address", "us3r:t0k3n", "us3r:t0k3n@", []],
  ])("with a login %s, which appears nowhere", async (_, pair, prefix, words) => {
    const { url } = serve({ authorization: `Basic ${btoa(pair)}` });
    const address = `${url.replace("://", `://${prefix}`)}/app.git#v1`;
    const given = { environment: { GIVEN: "t0k3n" } };
    const log = ["--progress", "json", "--log-level", "debug", "--metadata-file", "metadata"];
    const { texts, stdout, stderr } = await buildFrom(address, [...words, ...log], given);
    expect(texts).toEqual(firstFiles);
    expect(stdout + stderr).not.toMatch(/t0k3n|us3r|has no effect/);
    for (const directory of [builds.home, builds.directory])
      for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true }))
        if (entry.isFile())
          expect(readFileSync(join(entry.parentPath, entry.name), "latin1")).not.toContain("t0k3n");
    const without = await buildFrom(`${url}/app.git`);
    expect(without.stderr).toContain("Dockerfile:2: the build context src at ");
    expect(without.stderr).toContain(`${url}/app.git: authentication required or failed`);
    expect(without.exitCode).toBe(1);
  });

  test("its secret is still said to have no effect without a repository", async () => {
    writeFiles(builds.directory, { "lib/f": "f\n" });
    const { stderr } = await buildFrom("lib", ["--secret", "id=GIT_AUTH_TOKEN,env=HOME"]);
    expect(stderr).toContain("--secret id=GIT_AUTH_TOKEN has no effect");
  });

  test("is kept until the session of the build is deleted, but not while it is in use", async () => {
    const { url } = serve();
    await buildFrom(`${url}/app.git#v1`);
    const [path = ""] = kept();
    const [session = "", address] = basename(join(path, "..")).split("-");
    const remove = async (key: string) => (await builds.bough(["session", "delete", key])).exitCode;
    {
      using _held = openKeptContexts(builds.home, systemClock).find(
        `${session}-${address}`,
        builds.nameOf(path),
      );
      expect(await remove(`build:${session}`)).toBe(0);
      expect(kept()).toEqual([path]);
    }
    writeFiles(builds.directory, { "other/Dockerfile": copyAll });
    await build(["other", "--build-context", `src=${url}/app.git#v1`]);
    await buildFrom(`${url}/app.git#v1`);
    expect(kept()).toHaveLength(2);
    expect(await remove(`build:${session}`)).toBe(0);
    expect(kept()).toHaveLength(1);
    expect(kept()).not.toContain(path);
  });

  test("Ctrl-C ends git, and nothing is left", async () => {
    const interruption = new AbortController();
    const interrupted = new BoughError("interrupted", { kind: "interrupted" });
    const { url } = serve(withoutObjects(() => interruption.abort(interrupted)));
    const { exitCode } = await buildFrom(`${url}/app.git`, [], { signal: interruption.signal });
    expect(exitCode).toBe(130);
    expect(kept()).toEqual([]);
  });
});

describe("a file", () => {
  const archive = tarOf([{ name: "a", content: "a\n" }]);
  const modified = new Date(1_445_412_480_000);

  function serveFile(body: Uint8Array | string, headers: Record<string, string> = {}): string {
    const server = Bun.serve({ port: 0, fetch: () => new Response(body, { headers }) });
    builds.closeLater({ close: () => server.stop(true) });
    return `${server.url}data`;
  }

  test.each([
    ["a text", "plain\n", false],
    ["an empty file", "", false],
    ["an archive", archive, true],
    ["a compressed archive", Bun.gzipSync(archive), true],
  ])("%s is the file `context`, as in BuildKit", async (_, body, isArchive) => {
    const url = serveFile(body);
    const { texts, owners, stderr } = await buildFrom(url);
    expect(texts).toEqual({ "/x/context": Buffer.from(body).toString() });
    expect(owners).toEqual(["/x/context 0:0 0600"]);
    expect(stderr).toContain(`the file \`context\` came from ${url} (`);
    expect(stderr.includes("which is not unpacked, as in Docker")).toBe(isArchive);
    expect((await buildFrom(url)).stderr).toContain("1 of 1 layer cached");
    expect(kept()).toHaveLength(1);
  });

  test("has the time that the server reports, else that of 1970", async () => {
    await buildFrom(serveFile("same\n", { "last-modified": modified.toUTCString() }));
    await buildFrom(serveFile("same\n"));
    const times = kept().map((path) => statSync(join(path, "tree/context")).mtimeMs);
    expect(times.sort()).toEqual([0, modified.getTime()]);
  });

  test("however large, there is no advice on an ignore file, which would not apply", async () => {
    writeFiles(builds.directory, { Dockerfile: "FROM base:1\nCOPY --from=src . /x\nCOPY none /x\n" });
    const { stderr } = await buildFrom(serveFile(new Uint8Array(201_000_000)));
    expect(stderr).toContain("Dockerfile:3: ");
    expect(stderr).not.toContain(".dockerignore");
  });

  test("is all that the context has", async () => {
    writeFiles(builds.directory, { Dockerfile: copyAll.replace(" . ", " a ") });
    const { exitCode, stderr } = await buildFrom(serveFile(archive));
    expect(stderr).toContain("Dockerfile:2: no such file or directory in the build context src (http://");
    expect(stderr).toContain("is one file, which is called context. An archive is not unpacked, and ");
    expect(exitCode).toBe(1);
  });

  test("a server that is ill is asked again", async () => {
    let count = 0;
    const server = Bun.serve({
      port: 0,
      fetch: () => (++count < 3 ? new Response("", { status: 503 }) : new Response("well\n")),
    });
    builds.closeLater({ close: () => server.stop(true) });
    const clock = createManualClock((milliseconds) => milliseconds < 5000);
    const { texts, stderr } = await buildFrom(`${server.url}data`, [], { clock });
    expect(texts).toEqual({ "/x/context": "well\n" });
    expect(stderr).toContain(`the build context src at ${server.url}data: the server responded with 503`);
  });
});

test.each([
  ["/app.git#nowhere", [], "/app.git: the repository does not contain ref nowhere"],
  ["/app.git#v1:nowhere", [], "/app.git: the repository has no directory nowhere"],
  ["/none.git", [], "/none.git: git repository not found"],
  ["/none", [], "/none: the server responded with 404"],
  ["/app.git/HEAD", ["--max-add-size", "3"], "/app.git/HEAD: it is larger than 3 bytes"],
])("%s %j is an error of the instruction, also with --check", async (path, words, message) => {
  const { url } = serve({
    answer({ url }) {
      if (url.includes("/none")) return new Response("none", { status: 404 });
      return url.endsWith("HEAD") ? new Response("head") : undefined;
    },
  });
  const built = await buildFrom(`${url}${path}`, words);
  expect(built.stderr).toContain(`Dockerfile:2: the build context src at ${url}${message}`);
  expect(built.exitCode).toBe(1);
  const checked = await buildFrom(`${url}${path}`, [...words, "--check", "-f", "json"]);
  expect(JSON.parse(checked.stdout).errors).toEqual([
    { rule: "InvalidSource", message: expect.stringContaining(message), line: 2 },
  ]);
  expect(checked.exitCode).toBe(2);
  expect(kept()).toEqual([]);
});

test("--check fetches what is used, and keeps nothing", async () => {
  const { exitCode, stdout } = await buildFrom(`${serve().url}/app.git#v1:sub`, ["--check", "-f", "json"]);
  expect(JSON.parse(stdout).files).toEqual([
    expect.objectContaining({ line: 2, source: "bar", context: "src", destination: "/x/bar" }),
  ]);
  expect(exitCode).toBe(0);
  expect(kept()).toEqual([]);
});

test("a server that can't be reached is an error", async () => {
  const { url, stop } = serve();
  await stop();
  const clock = createManualClock((milliseconds) => milliseconds < 5000);
  for (const path of ["/app.git", "/a.tar"]) {
    const { exitCode, stderr } = await buildFrom(`${url.replace("://", "://us3r:p4ss@")}${path}`, [], {
      clock,
    });
    expect(stderr).toContain(`Dockerfile:2: the build context src at ${url}${path}: `);
    expect(stderr).toContain("that this machine can reach it.");
    expect(stderr).not.toMatch(/us3r|p4ss/);
    expect(exitCode).toBe(1);
  }
});
