/** Build contexts that are git repositories. */
import { Database } from "bun:sqlite";
import { afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { openKeptContexts } from "../../src/cli/contexts/kept-contexts.ts";
import { BoughError } from "../../src/errors.ts";
import { sha256Of } from "../../src/sha256.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { type FetchingBuilds, startFetchingBuilds } from "../support/fetching-builds.ts";
import { writeFiles } from "../support/files.ts";
import {
  commitTime,
  makeTemplate,
  type RepositoriesTemplate,
  type Repository,
  type serveRepositories,
  withoutObjects,
} from "../support/git-server.ts";
import { runOnSmallDisk } from "../support/small-disk.ts";
import { tarOf } from "../support/tar-bytes.ts";

let template: RepositoriesTemplate;
let root: string;
let app: Repository;
let builds: FetchingBuilds;
let service: FetchingBuilds["service"];
let directory: FetchingBuilds["directory"];
let home: FetchingBuilds["home"];
let scratch: FetchingBuilds["scratch"];
let build: FetchingBuilds["build"];
let kept: FetchingBuilds["kept"];

const dockerfile = "FROM base:1\nCOPY . /x\nRUN make\n";

beforeAll(() => {
  template = makeTemplate({
    Dockerfile: dockerfile,
    "Other.Dockerfile": "FROM base:1\nCOPY foo /other\nRUN make\n",
    ".dockerignore": "**/*ockerfile\n.dockerignore\nignored\n",
    ignored: "ignored\n",
    foo: "first\n",
    "run.sh": { text: "#!/bin/sh\n", mode: 0o755 },
    "sub/Dockerfile": "FROM base:1\nCOPY bar /x/\nRUN make\n",
    "sub/bar": "bar\n",
    link: { link: "foo" },
  });
});
beforeEach(async () => {
  ({ root, app } = template.copy());
  builds = await startFetchingBuilds();
  ({ service, directory, home, scratch, build, kept } = builds);
});
afterEach(() => builds.close());

const serve = (options?: Parameters<typeof serveRepositories>[1]) => builds.serve(root, options);

/** For tests without submodules, whose clones would take most of the time. */
function removeSubmodule(): void {
  app.git("reset", "--quiet", "--hard", "v1");
  rmSync(join(app.directory, "module"), { recursive: true });
}

const firstFiles = { "/x/foo": "first\n", "/x/run.sh": "#!/bin/sh\n", "/x/sub/bar": "bar\n" };
const latestFiles = {
  ...firstFiles,
  "/x/foo": "latest\n",
  "/x/.gitmodules": expect.stringContaining("library.git"),
  "/x/module/lib.txt": "library\n",
};

test.each([
  ["the default branch", "", [], latestFiles],
  ["a tag", "#v1", [], firstFiles],
  ["a query", "?ref=v1", [], firstFiles],
  ["no submodules", "?submodules=0#v1", [], firstFiles],
  ["a directory", "#v1:sub", [], { "/x/bar": "bar\n" }],
  ["a directory by query", "?tag=v1&subdir=sub", [], { "/x/bar": "bar\n" }],
  ["a Dockerfile", "#v1", ["--dockerfile", "Other.Dockerfile"], { "/other": "first\n" }],
  ["a Dockerfile from its root", "#v1", ["--dockerfile", "./Other.Dockerfile"], { "/other": "first\n" }],
])("%s", async (_, rest, words, expected) => {
  const { url } = serve();
  const { exitCode, stderr, texts } = await build([`${url}/app.git${rest}`, ...words]);
  expect({ exitCode, stderr: exitCode === 0 ? "" : stderr, texts }).toEqual({
    exitCode: 0,
    stderr: "",
    texts: expected,
  });
});

test("--dockerfile with an absolute path is a file of this machine", async () => {
  const { url } = serve();
  const path = join(temporaryDirectory(), "mine");
  writeFileSync(path, "FROM base:1\nCOPY foo /mine\nRUN make\n");
  const { texts } = await build([`${url}/app.git#v1`, "--dockerfile", path]);
  expect(texts).toEqual({ "/mine": "first\n" });
});

test("with --docker, its ignore file excludes nothing", async () => {
  const { url } = serve();
  const { texts, stderr } = await build([`${url}/app.git#v1`, "--docker"]);
  expect(texts).toMatchObject({ "/x/ignored": "ignored\n", "/x/.dockerignore": expect.anything() });
  expect(stderr).toContain(".dockerignore is not applied to the build context ");
});

test("a local directory with the name of an address is used instead", async () => {
  mkdirSync(join(directory, "git@host:x"));
  writeFiles(directory, { "git@host:x/Dockerfile": dockerfile, "git@host:x/mine": "mine\n" });
  expect((await build(["git@host:x"])).texts).toEqual({ "/x/Dockerfile": dockerfile, "/x/mine": "mine\n" });
});

test("modes and times are those of the commit, and .git is kept on request only", async () => {
  const { url } = serve();
  const { modes } = await build([`${url}/app.git`, "--docker"]);
  expect(modes).toContain("/x/run.sh 0755");
  expect(modes.filter((line) => line.includes(".git"))).toEqual(["/x/.gitmodules 0644"]);
  const [path = ""] = kept();
  for (const name of ["foo", "sub/bar", "module/lib.txt"])
    expect(statSync(join(path, "tree", name)).mtimeMs).toBe(commitTime * 1000);
  for (const words of [["?keep-git-dir=1"], ["", "--build-arg", "BUILDKIT_CONTEXT_KEEP_GIT_DIR=1"]]) {
    const [rest = "", ...options] = words;
    const withGit = await build([`${url}/app.git${rest}`, "--docker", "--no-cache", ...options]);
    expect(Object.keys(withGit.texts)).toContain("/x/.git/HEAD");
    expect(withGit.stderr).not.toContain("has no effect");
  }
  const odd = ["--build-arg", "BUILDKIT_CONTEXT_KEEP_GIT_DIR=tRUE"];
  const { texts } = await build([`${url}/app.git`, "--docker", "--no-cache", ...odd]);
  expect(Object.keys(texts)).not.toContain("/x/.git/HEAD");
});

test("a second build fetches nothing and runs nothing; commits share layers", async () => {
  const server = serve();
  await build([`${server.url}/app.git`]);
  server.requests.length = 0;
  const again = await build([`${server.url}/app.git`]);
  const latest = app.git("rev-parse", "HEAD");
  expect(again.stderr).toContain(`git cache hit (${latest} is known) ${server.url}/app.git\n`);
  expect(again.stderr).toContain("1 of 1 layer cached");
  expect(server.requests).toEqual(["GET /app.git/info/refs", "POST /app.git/git-upload-pack"]);

  app.commit({ ignored: "another\n" });
  const other = await build([`${server.url}/app.git`]);
  expect(other.stderr).toContain(`fetching ${server.url}/app.git at `);
  expect(other.stderr).toContain("1 of 1 layer cached");
  expect((await build(["--explain", `${server.url}/app.git#v1`])).stderr).toContain(
    "not cached: line 3, RUN make: /x/.gitmodules is gone",
  );
  const { stdout } = await builds.bough(["session", "list", "-f", "json"]);
  const key = `build:${sha256Of(`${server.url}/app.git`).slice(0, 16)}`;
  expect(JSON.parse(stdout)).toEqual([expect.objectContaining({ key, context: `${server.url}/app.git` })]);
});

test("a commit that is kept needs no server", async () => {
  const server = serve();
  await build([`${server.url}/app.git#${template.first}`]);
  await server.stop();
  expect((await build([`${server.url}/app.git#${template.first}`])).stderr).toContain("1 of 1 layer cached");
});

test("the latest four commits are kept until their session is deleted or their use ends; a dead process's files are removed at once", async () => {
  const { url } = serve();
  removeSubmodule();
  await build([`${url}/app.git`]);
  const group = join(kept()[0] ?? "", "..");
  mkdirSync(join(group, crypto.randomUUID(), ".users"), { recursive: true });
  let time = Date.now();
  const clock = createManualClock(() => false);
  for (let number = 0; number < 5; number++) {
    app.commit({ ignored: `${number}\n` });
    time += 60_000;
    const now = time;
    await build([`${url}/app.git`], { clock: { ...clock, now: () => now } });
  }
  const latest = app.git("rev-parse", "HEAD");
  expect(kept()).toHaveLength(4);
  expect(kept().filter((path) => builds.nameOf(path).includes(latest))).toHaveLength(1);
  const [store = ""] = new Bun.Glob("sessions/*.db").scanSync({ cwd: home, absolute: true });
  using database = new Database(store, { readonly: true });
  expect(database.query("SELECT context FROM hash").all()).toEqual([{ context: `${url}/app.git` }]);
  const key = `build:${sha256Of(`${url}/app.git`).slice(0, 16)}`;
  const deleteSession = async () => {
    const { exitCode } = await builds.bough(["session", "delete", key]);
    expect(exitCode).toBe(0);
  };
  const used = kept().find((path) => builds.nameOf(path).includes(latest)) ?? "";
  {
    using _held = openKeptContexts(home, clock).find(basename(group), builds.nameOf(used));
    await deleteSession();
    expect(kept()).toEqual([used]);
  }
  await build([`${url}/app.git`]);
  await deleteSession();
  expect(kept()).toEqual([]);
});

test("two concurrent builds, each in its own process, both succeed", async () => {
  const { url } = serve();
  const given = { CONTREE_URL: service.url, CONTREE_TOKEN: "t0ken-t0ken", BOUGH_HOME: home };
  const both = ["--no-cache", "--explain"].map((word) =>
    Bun.spawn([compileBough(), "build", `${url}/app.git#v1`, word], {
      cwd: directory,
      env: { PATH: process.env.PATH, TMPDIR: scratch, ...given },
      stdio: ["ignore", "ignore", "ignore"],
    }),
  );
  expect(await Promise.all(both.map(({ exited }) => exited))).toEqual([0, 0]);
  expect(kept()).toHaveLength(1);
});

test("--check fetches it, and keeps nothing", async () => {
  const { url } = serve();
  app.commit({ Dockerfile: "FROM base:1\nCOPY missing /x\n" });
  const { exitCode, stdout } = await build([`${url}/app.git`, "--check"]);
  expect(stdout).toContain("missing");
  expect(exitCode).toBe(2);
  expect((await build([`${url}/app.git#v1`, "--check"])).exitCode).toBe(0);
  expect(kept()).toEqual([]);
});

test.each([
  ["as a token", "x-access-token:t0k3n", "", ["--secret", "id=GIT_AUTH_TOKEN,env=GIVEN"]],
  ["in the address", "us3r:p4ss", "us3r:p4ss@", []],
])("a login %s", async (_, pair, prefix, words) => {
  const { url } = serve({ authorization: `Basic ${btoa(pair)}` });
  const address = `${url.replace("://", `://${prefix}`)}/app.git#v1`;
  const given = { environment: { GIVEN: "t0k3n" } };
  const { texts, stderr } = await build([address, ...words], given);
  expect(texts).toEqual(firstFiles);
  expect(stderr).not.toMatch(/t0k3n|p4ss|has no effect/);
  const without = await build([`${url}/app.git`]);
  expect(without.stderr).toContain(`the build context ${url}/app.git: authentication required or failed`);
  expect(without.exitCode).toBe(1);
});

test.each([
  ["#nowhere", [], "the repository does not contain ref nowhere", 1],
  ["#v1:nowhere", [], "the repository has no directory nowhere", 1],
  ["#v1:link", [], "the repository has no directory link", 1],
  ["?what=1", [], 'unexpected query "what"', 2],
  ["#v1", ["--dockerfile", "none"], "cannot read the Dockerfile none: the build context ", 2],
  ["#v1", ["--dockerfile", "sub"], "cannot read the Dockerfile sub: it is a directory", 2],
  ["#v1", ["--dockerfile", "../../../../etc/hostname"], "cannot read the Dockerfile etc/hostname:", 2],
])("is refused: %s %j", async (rest, words, message, code) => {
  const { url } = serve();
  const { exitCode, stderr } = await build([`${url}/app.git${rest}`, ...words]);
  expect(stderr).toContain(message);
  expect(exitCode).toBe(code);
  expect(kept().filter((path) => path.includes("/."))).toEqual([]);
});

test.each(["file:///tmp/x.git", "ftp://us3r:p4ss@host/x.tar"])("%s is not supported", async (address) => {
  const { exitCode, stderr } = await build([address]);
  expect(stderr).toContain("unsupported address");
  expect(stderr).not.toContain("p4ss");
  expect(exitCode).toBe(2);
});

test.each([
  ["git://us3r:p4ss@127.0.0.1:1/x.git", 1],
  ["git://us3r:p4%2fss@127.0.0.1:1/x.git", 1],
  ["https://us3r:p4ss@host:99999/x.git", 2],
  ["http://us3r:p4ss@[/x.git", 2],
])("no password is shown: %s", async (address, code) => {
  writeFiles(directory, { Dockerfile: `FROM base:1\nADD ${address} /x\nRUN make\n` });
  for (const words of [[address], [".", "--docker"]]) {
    const { exitCode, stderr } = await build(words);
    expect(stderr).toMatch(
      /(git:\/\/127.0.0.1:1\/x.git: unable to connect to 127.0.0.1: .*errno=|x\.git: invalid address)/,
    );
    expect(stderr).not.toMatch(/us3r|p4|bough itself/);
    expect(exitCode).toBe(code);
  }
});

test("a repository that is larger than --max-add-size is refused", async () => {
  app.commit({ zeros: "0".repeat(200_000) });
  const { url } = serve();
  const { exitCode, stderr } = await build([`${url}/app.git`, "--max-add-size", "100K"]);
  expect(stderr).toContain(`the build context ${url}/app.git: it is larger than `);
  expect(exitCode).toBe(1);
  expect(kept()).toEqual([]);
});

test("a server that can't be reached is an error", async () => {
  const { url, stop } = serve();
  await stop();
  const { exitCode, stderr } = await build([`${url}/app.git`]);
  expect(stderr).toContain(`the build context ${url}/app.git: `);
  expect(stderr).toContain("that this machine can reach it.");
  expect(exitCode).toBe(1);
});

test.each(["Dockerfile", ".dockerignore", "Dockerfile.dockerignore"])(
  "%s does not lead out by a link",
  async (name) => {
    // A Dockerfile that could be built, and an ignore file with an error that would be quoted.
    writeFileSync(join(directory, "secret"), "FROM base:1\nRUN echo s3cret\n[s3cret\n");
    const { url } = serve();
    removeSubmodule();
    app.git("rm", "--quiet", "--ignore-unmatch", name);
    app.commit({ foo: "another\n" });
    const without = await build([`${url}/app.git`]);
    app.commit({ [name]: { link: join(directory, "secret") } });
    const { exitCode: linked, stderr, requests, texts } = await build([`${url}/app.git`, "--no-cache"]);
    expect(stderr).not.toContain("s3cret");
    expect(JSON.stringify(requests)).not.toContain("s3cret");
    if (name === "Dockerfile") expect(stderr).toContain("cannot read the Dockerfile Dockerfile: the build");
    else expect({ linked, texts }).toEqual({ linked: 0, texts: without.texts });
    app.git("rm", "--quiet", name);
    app.commit({ [name]: { link: "../secret" } });
    const { exitCode, stderr: said } = await build([`${url}/app.git`]);
    expect(said).toContain(`the symbolic link ${name} leads out of the build context`);
    expect(exitCode).toBe(1);
  },
);

test("Ctrl-C ends git, and the fetched files are removed", async () => {
  const interruption = new AbortController();
  const interrupted = new BoughError("interrupted", { kind: "interrupted" });
  const { url } = serve(withoutObjects(() => interruption.abort(interrupted)));
  expect((await build([`${url}/app.git`], { signal: interruption.signal })).exitCode).toBe(130);
  expect(kept()).toEqual([]);
});

test("--iidfile does not overwrite a Dockerfile of this machine", async () => {
  const path = join(directory, "mine");
  writeFileSync(path, dockerfile);
  const words = ["https://localhost/app.git", "--dockerfile", path, "--iidfile", path];
  const { exitCode, stderr } = await build(words);
  expect(stderr).toContain("this is the build's mine");
  expect(exitCode).toBe(2);
});

test("an archive or a commit that is too large for the disk is an error", async () => {
  const given = { CONTREE_URL: service.url, CONTREE_TOKEN: "t0ken-t0ken", TMPDIR: scratch };
  const disk = {
    workingDirectory: directory,
    environment: { ...given, BOUGH_HOME: join(directory, "disk/home") },
    bytes: 1024 * 1024,
    usedBytes: 0,
  };
  const content = crypto.getRandomValues(new Uint8Array(60_000)).toHex().repeat(20);
  const stdin = tarOf([{ name: "large", content }]);
  const fromStdin = await runOnSmallDisk(["build", "-"], { ...disk, stdin });
  expect(fromStdin.stderr).toContain(`cannot store the build context in ${directory}/disk/home/contexts/`);
  expect(fromStdin.exitCode).toBe(1);
  removeSubmodule();
  app.commit({ large: content });
  const { url } = serve();
  const fetched = await runOnSmallDisk(["build", `${url}/app.git`], disk);
  expect(fetched.stderr).toContain("no space left on the disk that it is fetched to");
  expect(fetched.exitCode).toBe(1);
});
