/** ADD of git repositories from real servers: git's own, one of plain files, one behind ssh. */
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { BoughError } from "../../src/errors.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { type BoughOptions, temporaryDirectory } from "../support/bough.ts";
import { type FetchingBuilds, startFetchingBuilds } from "../support/fetching-builds.ts";
import { writeFiles } from "../support/files.ts";
import {
  makeRepository,
  makeTemplate,
  type RepositoriesTemplate,
  type Repository,
  repositoriesDirectory,
  type serveRepositories,
  withoutObjects,
} from "../support/git-server.ts";
import { tarOf } from "../support/tar-bytes.ts";

let template: RepositoriesTemplate;
let root: string;
let app: Repository;
/** Hashes of commits. */
let first: string;
let feature: string;
let builds: FetchingBuilds;
let service: FetchingBuilds["service"];
let context: string;
let home: string;
/** The directory of temporary checkouts. */
let scratch: string;

beforeAll(() => {
  template = makeTemplate({ foo: "first\n", "run.sh": { text: "#!/bin/sh\n", mode: 0o755 } }, (made) => {
    made.git("tag", "--annotate", "--message=two", "v1-annotated");
    made.git("checkout", "--quiet", "-b", "feature");
    feature = made.commit({ foo: "feature\n", "sub/bar": "bar\n", ".gitattributes": "* text eol=crlf\n" });
    made.git("checkout", "--quiet", "main");
  });
  ({ first } = template);
});
beforeEach(async () => {
  ({ root, app } = template.copy());
  builds = await startFetchingBuilds();
  ({ service, directory: context, home, scratch } = builds);
});
afterEach(() => builds.close());

const serve = (options?: Parameters<typeof serveRepositories>[1]) => builds.serve(root, options);

function build(dockerfile: string, words: string[] = ["--docker"], options: Partial<BoughOptions> = {}) {
  writeFiles(context, { Dockerfile: `FROM base:1\n${dockerfile}\nRUN make\n` });
  return builds.build(words, options);
}

const latestFiles = {
  "/x/.gitmodules": expect.stringContaining("library.git"),
  "/x/foo": "latest\n",
  "/x/module/lib.txt": "library\n",
  "/x/run.sh": "#!/bin/sh\n",
};
const firstFiles = { "/x/foo": "first\n", "/x/run.sh": "#!/bin/sh\n" };
const featureFiles = {
  "/x/.gitattributes": "* text eol=crlf\r\n",
  "/x/foo": "feature\r\n",
  "/x/run.sh": "#!/bin/sh\r\n",
  "/x/sub/bar": "bar\r\n",
};
const { "/x/module/lib.txt": _, ...withoutModule } = latestFiles;

describe.each([
  ["git's own server", false],
  ["a server of plain files", true],
])("from %s", (_, isDumb) => {
  test.each([
    ["the default branch", () => "", latestFiles],
    ["a branch", () => "#feature", featureFiles],
    ["a tag", () => "#v1", firstFiles],
    ["an annotated tag", () => "#v1-annotated", firstFiles],
    ["a full ref name", () => "#refs/heads/feature", featureFiles],
    ["a commit", () => `#${first}`, firstFiles],
    ["a directory of a branch", () => "#feature:sub", { "/x/bar": "bar\r\n" }],
    ["no submodules", () => "?submodules=false", withoutModule],
    ["a tag and its commit", () => `?tag=v1&commit=${first.slice(0, 8)}`, firstFiles],
    ["a commit and a branch", () => `?branch=main&fetch-by-commit&commit=${first.toUpperCase()}`, firstFiles],
  ])("%s", async (_, rest, expected) => {
    const { url } = builds.serve(isDumb ? plainFiles() : template.root, { isDumb });
    const add = `ADD ${url}/app.git${rest()} /x`;
    const { exitCode, stderr, texts } = await build(add);
    expect({ exitCode, stderr: exitCode === 0 ? "" : stderr, texts }).toEqual({
      exitCode: 0,
      stderr: "",
      texts: expected,
    });
  });
});

let dumb: string | undefined;

/** Returns a directory of bare repositories for a server of plain files. */
function plainFiles(): string {
  if (dumb !== undefined) return dumb;
  dumb = repositoriesDirectory();
  for (const name of ["app", "library"]) {
    const bare = join(dumb, `${name}.git`);
    app.git("clone", "--quiet", "--bare", join(template.root, `${name}.git`), bare);
    app.git("--git-dir", bare, "update-server-info");
  }
  return dumb;
}

test("files belong to root unless --chown and --chmod say otherwise; --exclude leaves some out", async () => {
  const { url } = serve();
  const plain = await build(`ADD ${url}/app.git#v1 /x`);
  expect(plain.owners).toEqual(["/x/foo 0:0 0644", "/x/run.sh 0:0 0755"]);
  const flags = await build(`ADD --chown=7:8 --chmod=u=rwx,go= --exclude=foo ${url}/app.git#v1 /x/`);
  expect(flags.owners).toEqual(["/x/run.sh 7:8 0700"]);
});

describe("if several sources have the same path, the last source is copied, as in Docker", () => {
  const sources = {
    URL: "from the url\n",
    GIT: "from git\n",
    "t.tar": "from the tar\n",
    "a.txt": "local a\n",
    "b/a.txt": "local b\n",
    "b/": "local b\n",
  };

  test.each([
    "a.txt URL",
    "URL a.txt",
    "a.txt t.tar",
    "t.tar a.txt",
    "URL t.tar",
    "t.tar URL",
    "a.txt URL b/a.txt",
    "URL b/",
    "a.txt GIT",
    "GIT a.txt",
    "GIT URL",
    "t.tar GIT",
    "GIT t.tar",
    "[a].txt URL none* a.txt",
    "a.txt URL a.txt",
    "GIT [a].txt b/ t.tar URL",
  ])("ADD %s", async (words) => {
    if (words.includes("GIT")) makeRepository(join(root, "order.git")).commit({ "a.txt": sources.GIT });
    const source = Bun.serve({ port: 0, fetch: () => new Response(sources.URL) });
    builds.closeLater({ close: () => source.stop(true) });
    const { url } = serve();
    writeFiles(context, { "a.txt": sources["a.txt"], "b/a.txt": sources["b/"] });
    writeFileSync(join(context, "t.tar"), tarOf([{ name: "a.txt", content: sources["t.tar"] }]));
    const given = words.replace("URL", `${source.url}a.txt`).replace("GIT", `${url}/order.git`);
    const { texts, stderr } = await build(`ADD ${given} /d/`);
    const last = words.split(" ").at(-1) as keyof typeof sources;
    expect({ texts, stderr: "/d/a.txt" in texts ? "" : stderr }).toEqual({
      texts: { "/d/a.txt": sources[last] },
      stderr: "",
    });
  });
});

test("a repository can be one of several sources", async () => {
  writeFiles(context, { mine: "mine\n" });
  const { url } = serve();
  const { texts } = await build(`ADD ${url}/app.git#v1 mine /x`);
  expect(texts).toEqual({ ...firstFiles, "/x/mine": "mine\n" });
  const { exitCode, stderr } = await build(`ADD mine ${url}/app.git#v1 /x`);
  expect(stderr).toContain("cannot copy to non-directory: /x");
  expect(exitCode).toBe(1);
});

test("an unchanged branch is not fetched; a moved one is, and the same files keep the layer cached", async () => {
  const server = serve();
  const add = `ADD ${server.url}/app.git#feature /x`;
  await build(add);
  server.requests.length = 0;
  const again = await build(add);
  expect(again.stderr).toContain(`git cache hit (${feature} is known) ${server.url}/app.git\n`);
  expect(again.stderr).toContain("1 of 1 layer cached");
  expect(server.requests).toEqual(["GET /app.git/info/refs", "POST /app.git/git-upload-pack"]);

  app.git("checkout", "--quiet", "feature");
  app.git("commit", "--quiet", "--allow-empty", "--message=nothing");
  const empty = app.git("rev-parse", "HEAD");
  const same = await build(add);
  expect(same.stderr).toContain(`fetching ${server.url}/app.git at ${empty} (refs/heads/feature)\n`);
  expect(same.stderr).toContain("1 of 1 layer cached");
  app.commit({ foo: "moved\n" });
  const moved = await build(add);
  expect(moved.stderr).toContain("0 of 1 layer cached");
  expect(moved.texts["/x/foo"]).toBe("moved\r\n");
});

test("a known commit needs no server", async () => {
  const server = serve();
  await build(`ADD ${server.url}/app.git#${first} /x`);
  await server.stop();
  expect((await build(`ADD ${server.url}/app.git#${first} /y`)).texts).toEqual({
    "/y/foo": "first\n",
    "/y/run.sh": "#!/bin/sh\n",
  });
});

test("a repository whose files the service has lost is fetched again", async () => {
  const { url } = serve();
  await build(`ADD ${url}/app.git#v1 /x`);
  service.state.files.clear();
  const { exitCode, texts } = await build(`ADD ${url}/app.git#v1 /y`);
  expect(exitCode).toBe(0);
  expect(texts).toEqual({ "/y/foo": "first\n", "/y/run.sh": "#!/bin/sh\n" });
});

describe("--keep-git-dir", () => {
  test.each([
    ["--keep-git-dir ", ""],
    ["", "?keep-git-dir"],
  ])("%s%s keeps a repository of one commit, which contains nothing of this machine", async (flag, query) => {
    const { url } = serve();
    const address = `${url.replace("://", "://us3r:p4ssw0rd@")}/app.git${query}#v1-annotated`;
    const one = await build(`ADD ${flag}${address} /x`);
    const { texts } = one;
    expect(texts["/x/.git/HEAD"]).toBe(`${first}\n`);
    expect(texts["/x/.git/config"]).toContain(`url = ${url}/app.git\n`);
    expect(Object.keys(texts).filter((path) => path.includes("/refs/"))).toEqual([
      "/x/.git/refs/tags/v1-annotated",
    ]);
    expect(Object.values(texts).join("\n")).not.toMatch(/us3r|p4ssw0rd|bough-git/);
    // Another machine makes the same bytes.
    const other = await build(`ADD ${flag}${address} /x`, ["--docker", "--no-cache"], {
      environment: { BOUGH_HOME: temporaryDirectory() },
    });
    expect(other.texts).toEqual(texts);
  });

  test("keeps nothing if only a directory of the repository is added", async () => {
    const { url } = serve();
    expect((await build(`ADD --keep-git-dir ${url}/app.git#feature:sub /x`)).texts).toEqual({
      "/x/bar": "bar\r\n",
    });
  });

  test("keeps submodules, too", async () => {
    const { url } = serve();
    const { texts } = await build(`ADD --keep-git-dir ${url}/app.git /x`);
    expect(texts["/x/module/.git"]).toBe("gitdir: ../.git/modules/module\n");
  });
});

test("a repository with hashes of 64 digits is added", async () => {
  const wide = makeRepository(join(root, "wide.git"), { format: "sha256" });
  const commit = wide.commit({ a: "a\n" });
  const { url } = serve();
  for (const ref of ["main", commit])
    expect((await build(`ADD --checksum=${commit} ${url}/wide.git#${ref} /${ref}`)).texts).toEqual({
      [`/${ref}/a`]: "a\n",
    });
});

describe("a login", () => {
  const basic = (user: string, password: string) => `Basic ${btoa(`${user}:${password}`)}`;
  const wanted = "authentication required or failed";

  test.each([
    ["in the address", basic("us3r", "p4ss w0rd"), [], true],
    ["as a token", basic("x-access-token", "t0k3n"), ["--secret", "id=GIT_AUTH_TOKEN,env=GIVEN"], false],
    ["as a header", "t0k3n", ["--secret", "id=GIT_AUTH_HEADER,env=GIVEN"], false],
    ["none", basic("us3r", "p4ss w0rd"), [], false],
  ])("%s", async (_, authorization, words, isInAddress) => {
    const server = serve({ authorization });
    const url = isInAddress ? server.url.replace("://", "://us3r:p4ss%20w0rd@") : server.url;
    const given = { environment: { GIVEN: "t0k3n\n", GIT_ASKPASS: "/bin/false" } };
    const { exitCode, stderr, texts } = await build(`ADD ${url}/app.git /x`, ["--docker", ...words], given);
    const isRefused = !isInAddress && words.length === 0;
    expect(exitCode).toBe(isRefused ? 1 : 0);
    // The submodule's address is relative: it is on the same server.
    if (isRefused) expect(stderr).toContain(`ADD ${server.url}/app.git: ${wanted}`);
    else expect(texts).toEqual(latestFiles);
    expect(stderr).not.toMatch(/p4ss|t0k3n\n|has no effect/);
    for (const name of readdirSync(join(home, "sessions")))
      expect(readFileSync(join(home, "sessions", name), "latin1")).not.toMatch(/p4ss|t0k3n\n/);
  });

  test("a token of one host is not used for another", async () => {
    const { url } = serve({ authorization: basic("x-access-token", "t0k3n") });
    const { host } = new URL(url);
    const withToken = (id: string) =>
      build(`ADD ${url}/app.git#v1 /x`, ["--docker", "--secret", `id=${id},env=GIVEN`], {
        environment: { GIVEN: "t0k3n" },
      });
    expect((await withToken("GIT_AUTH_TOKEN.example.org")).stderr).toContain(wanted);
    expect((await withToken(`GIT_AUTH_TOKEN.${host}`)).texts).toEqual(firstFiles);
  });
});

describe("over ssh", () => {
  /** Puts a script in the place of ssh, which plays the other side on this machine, and starts an SSH agent. */
  async function replaceSsh(script: string): Promise<Partial<BoughOptions>> {
    const bin = temporaryDirectory();
    writeFiles(bin, { ssh: { text: `#!/bin/sh\n${script}\n`, mode: 0o755 } });
    const agent = createServer();
    const socket = join(bin, "agent");
    await new Promise<void>((resolve) => agent.listen(socket, resolve));
    builds.closeLater(agent);
    return { environment: { PATH: `${bin}:${process.env.PATH}`, SSH_AUTH_SOCK: socket } };
  }

  test.each([
    (path: string) => `git@somewhere:${path}#v1`,
    (path: string) => `ssh://git@somewhere${path}#v1`,
  ])("with an agent (%#)", async (address) => {
    const options = await replaceSsh('[ -S "$SSH_AUTH_SOCK" ] || exit 9; for last; do :; done; eval "$last"');
    const add = `ADD ${address(join(root, "app.git"))} /x`;
    const { texts, stderr } = await build(add, ["--docker", "--ssh", "default"], options);
    expect({ texts, stderr: texts["/x/foo"] === undefined ? stderr : "" }).toEqual({
      texts: firstFiles,
      stderr: "",
    });
    const without = await build(add, ["--docker"], options);
    expect(without.stderr).toContain("an SSH agent is required, but was not given");
    expect(without.exitCode).toBe(2);
  });

  test("an unknown host key is an error", async () => {
    const options = await replaceSsh("echo 'Host key verification failed.' >&2; exit 255");
    const { stderr } = await build("ADD git@somewhere:x /x", ["--docker", "--ssh", "default"], options);
    expect(stderr).toContain("ADD git@somewhere:x: the server's host key is not known to this machine");
  });
});

test("a repository is fetched with git's own protocol", async () => {
  const server = createServer((socket) => {
    const child = Bun.spawn(["git", "daemon", "--inetd", "--export-all", `--base-path=${root}`], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "ignore",
    });
    socket.on("data", (data) => {
      child.stdin.write(data);
      child.stdin.flush();
    });
    socket.on("end", () => child.stdin.end());
    socket.on("error", () => child.kill());
    void (async () => {
      for await (const chunk of child.stdout) socket.write(chunk);
      socket.end();
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  builds.closeLater(server);
  const { port } = server.address() as { port: number };
  expect((await build(`ADD git://127.0.0.1:${port}/app.git#v1 /x`)).texts).toEqual(firstFiles);
});

describe("refused", () => {
  test.each([
    ["#nowhere", "the repository does not contain ref nowhere", 1],
    ["?branch=v1", "the repository does not contain ref refs/heads/v1", 1],
    ["#abcdef12", "Give the full hash of a commit.", 1],
    [`#${"0".repeat(40)}`, `the repository has no commit ${"0".repeat(40)}`, 1],
    ["#v1:nowhere", "the repository has no directory nowhere", 1],
    ["#v1:foo", "the repository has no directory foo", 1],
    ["?checksum=foobar", "invalid checksum foobar for a git repository: expected hex commit hash", 1],
    ["?checksum=0123456789#v1", "expected checksum to match 0123456789, got ", 1],
    ["?unknown=1", 'unexpected query "unknown"', 2],
  ])("%s", async (rest, message, code) => {
    const { url } = serve();
    const { exitCode, stderr } = await build(`ADD ${url}/app.git${rest} /x`);
    expect(stderr).toContain(message);
    expect(exitCode).toBe(code);
  });

  test.each([
    ["a missing repository", ": git repository not found", () => new Response("none", { status: 404 })],
    [
      "a server without git",
      "is this a git repository?",
      () => new Response("<html>\nhello\n</html>\n", { headers: { "content-type": "text/html" } }),
    ],
    [
      "a server without git, with a page of one line",
      ": could not find the default branch: the repository is empty, or its HEAD names a missing branch",
      () => new Response("<html>hello</html>", { headers: { "content-type": "text/html" } }),
    ],
    [
      "a redirect to FTP",
      ": the server redirects to an address that is less secure; refused",
      () => Response.redirect("ftp://127.0.0.1/app.git/info/refs"),
    ],
  ])("%s", async (_, reason, answer) => {
    const { url } = serve({ answer });
    const { exitCode, stderr } = await build(`ADD ${url}/app.git /x`);
    const error = stderr.split("\n").find((line) => line.startsWith("[ERROR]"));
    expect(error).toStartWith(`[ERROR] Dockerfile:2: ADD ${url}/app.git: `);
    expect(error).toEndWith(reason);
    expect(exitCode).toBe(1);
  });

  test("a repository whose HEAD names a missing branch, unless a branch is given", async () => {
    app.git("symbolic-ref", "HEAD", "refs/heads/missing");
    const { url } = serve();
    const { exitCode, stderr } = await build(`ADD ${url}/app.git /x`);
    expect(stderr).toContain("its HEAD names a missing branch");
    expect(stderr).toContain("Check the address, or give the name of a branch or tag.");
    expect(exitCode).toBe(1);
    expect((await build(`ADD ${url}/app.git#feature /x`)).texts).toEqual(featureFiles);
  });

  test("after three requests: a server that responds with 503", async () => {
    const server = serve({ answer: () => new Response("", { status: 503 }) });
    const { stderr } = await build(`ADD ${server.url}/app.git /x`, ["--docker"], {
      clock: createManualClock((milliseconds) => milliseconds < 15_000),
    });
    expect(server.requests).toHaveLength(3);
    expect(stderr).toContain("trying again in 2 s");
  });

  test("a repository that is larger than --max-add-size", async () => {
    app.commit({ zeros: "0".repeat(200_000) });
    const { url } = serve();
    const { exitCode, stderr } = await build(`ADD ${url}/app.git /x`, ["--docker", "--max-add-size", "100K"]);
    expect(stderr).toContain(`ADD ${url}/app.git: it is larger than `);
    expect(exitCode).toBe(1);
  });

  test("any repository if git is not installed", async () => {
    const { exitCode, stderr } = await build("ADD https://localhost/app.git /x", ["--docker"], {
      environment: { PATH: "/nowhere" },
    });
    expect(stderr).toContain("git is not installed, but fetching a repository needs it");
    expect(exitCode).toBe(2);
  });

  test("any repository without --docker", async () => {
    const { exitCode, stderr } = await build("ADD https://localhost/app.git /x", []);
    expect(stderr).toContain(
      "ADD https://localhost/app.git: git repositories are not fetched without --docker",
    );
    expect(exitCode).toBe(2);
  });

  test.each([
    [
      "COPY https://localhost/app.git /x",
      "COPY https://localhost/app.git: the source can't be a git repository",
    ],
    ["COPY https://localhost/file /x", "COPY https://localhost/file: the source can't be a URL"],
    [
      "ADD --checksum=abc https://localhost/a.git https://localhost/b.git /x",
      "ADD --checksum requires a single source",
    ],
    [
      "ADD --checksum=abc foo /x",
      "ADD --checksum is only for a URL or a git repository, but foo is a local path",
    ],
    [
      "ADD --keep-git-dir https://localhost/a.git?keep-git-dir=0 /x",
      "--keep-git-dir conflicts with the address",
    ],
    ["ADD --checksum=abc https://localhost/a.git?commit=abd /x", "--checksum conflicts with the address"],
  ])("%s", async (dockerfile, message) => {
    for (const words of [["--docker"], ["--docker", "--check"]]) {
      const { exitCode, stdout, stderr } = await build(dockerfile, words);
      expect(stdout + stderr).toContain(message);
      expect(exitCode).toBe(2);
    }
  });
});

test("Ctrl-C ends git", async () => {
  const interruption = new AbortController();
  const asked = Promise.withResolvers<void>();
  const { url } = serve(withoutObjects(asked.resolve));
  const ending = build(`ADD ${url}/app.git /x`, ["--docker"], { signal: interruption.signal });
  await asked.promise;
  expect(processesOf(scratch)).not.toEqual([]);
  interruption.abort(new BoughError("interrupted", { kind: "interrupted" }));
  expect((await ending).exitCode).toBe(130);
  expect(processesOf(scratch)).toEqual([]);
});

/** Command lines of processes that name a directory. */
function processesOf(directory: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      } catch {
        return "";
      }
    })
    .filter((words) => words.includes(directory));
}

describe("a hostile repository", () => {
  test("runs nothing on this machine", async () => {
    const canary = join(scratch, "..", `canary-${crypto.randomUUID()}`);
    app.commit({
      ".gitattributes": "* filter=evil diff=evil\n",
      ".gitconfig": `[filter "evil"]\n\tsmudge = touch ${canary}\n`,
      ".lfsconfig": `[lfs]\n\turl = "file:///"\n`,
      ".gitmodules": `[submodule "m"]\n\tpath = module\n\turl = ../library.git\n\tupdate = !touch ${canary}\n`,
    });
    const { url } = serve();
    await build(`ADD ${url}/app.git /x`);
    expect(existsSync(canary)).toBe(false);
  });

  test.each([
    ["file", (path: string) => `file://${path}`],
    ["ext", () => "ext::sh -c touch% /tmp/x"],
    ["a path", (path: string) => path],
  ])("gets no submodule from this machine: %s", async (_, url) => {
    const secret = makeRepository(join(scratch, "..", `secret-${crypto.randomUUID()}`));
    secret.commit({ secret: "s3cret\n" });
    app.git("config", "--file", ".gitmodules", "submodule.module.url", url(secret.directory));
    app.commit({});
    const server = serve();
    const { exitCode, texts } = await build(`ADD ${server.url}/app.git /x`);
    expect(texts).not.toHaveProperty("/x/module/secret");
    expect(exitCode).toBe(1);
  });

  test("does not lead out by a link", async () => {
    makeRepository(join(root, "links.git")).commit({ out: { link: "/etc" }, in: { link: "." } });
    const { url } = serve();
    for (const directory of ["out", "in/in", ".git", "in/.git"]) {
      const { exitCode, stderr } = await build(`ADD ${url}/links.git#main:${directory} /x`);
      expect(stderr).toContain(`the repository has no directory ${directory}`);
      expect(exitCode).toBe(1);
    }
  });
});

test("git settings of the user and in the environment have no effect", async () => {
  const person = temporaryDirectory();
  writeFiles(person, {
    ".gitconfig": '[core]\n\tautocrlf = true\n[url "https://nowhere.invalid/"]\n\tinsteadOf = http\n',
  });
  const { url } = serve();
  const environment = { HOME: person, XDG_CONFIG_HOME: person, GIT_DIR: "/nowhere", GIT_TRACE: "1" };
  expect((await build(`ADD ${url}/app.git#v1 /x`, ["--docker"], { environment })).texts).toEqual(firstFiles);
});

test("--check lists a repository without its password", async () => {
  const { url } = serve();
  const address = `${url.replace("://", "://us3r:p4ssw0rd@")}/app.git`;
  const check = await build(`ADD ${address}#v1 /x`, ["--docker", "--check", "--format", "json"]);
  expect(check.exitCode).toBe(0);
  expect(JSON.parse(check.stdout).files).toEqual([
    expect.objectContaining({ source: `${url}/app.git`, type: "directory", destination: "/x", size: null }),
  ]);
});
