/** `bough build --lock`: what a lock has, and what builds with it use. A fake service, and real servers of what is fetched. */
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { digestOf } from "../../src/image/digest.ts";
import { boughOn } from "../fake-service/bough-on.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { type FetchingBuilds, startFetchingBuilds } from "../support/fetching-builds.ts";
import { writeFiles } from "../support/files.ts";
import { makeTemplate, type RepositoriesTemplate, type Repository } from "../support/git-server.ts";

let template: RepositoriesTemplate;
let builds: FetchingBuilds;
let repository: Repository;
let servers: ReturnType<typeof startServers>;
/** The address of the repository. */
let git: string;
let directory: string;

beforeAll(() => {
  template = makeTemplate({ foo: "first\n" });
});
beforeEach(async () => {
  const { root, app } = template.copy();
  repository = app;
  builds = await startFetchingBuilds();
  ({ directory } = builds);
  git = `${builds.serve(root).url}/app.git`;
  servers = startServers();
  builds.closeLater(servers);
});
afterEach(() => builds.close());

/** A registry and a web server in one. The content of a tag or file is a text, which may change. */
function startServers() {
  const tags = new Map([
    ["app:1", "one"],
    ["app:2", "two"],
  ]);
  const files = new Map([["/file", "content\n"]]);
  const requests: string[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch({ url, method }) {
      const { pathname } = new URL(url);
      requests.push(`${method} ${pathname}`);
      if (pathname === "/v2/") return new Response("{}");
      const [, name, tag] = /^\/v2\/(.*)\/manifests\/(.*)$/.exec(pathname) ?? [];
      const content = tags.get(`${name}:${tag}`);
      if (content !== undefined)
        return new Response(manifestOf(content), { headers: { "content-type": ociManifest } });
      const text = files.get(pathname);
      if (text === undefined) return new Response("none", { status: 404 });
      return new Response(text, { headers: { etag: `"${digestOf(text)}"` } });
    },
  });
  const host = `127.0.0.1:${server.port}`;
  return {
    ...{ host, tags, files, requests },
    digestOf: (tag: string) => digestOf(manifestOf(tags.get(tag) ?? "")),
    close: () => server.stop(true),
  };
}

const ociManifest = "application/vnd.oci.image.manifest.v1+json";
const manifestOf = (content: string) => JSON.stringify({ schemaVersion: 2, content });

const lockPath = () => join(directory, "bough.lock");
const lockText = () => readFileSync(lockPath(), "utf8");
const lockedNames = () =>
  (JSON.parse(lockText()).references as { name: string }[]).map(({ name }) =>
    name.replace(servers.host, "HOST"),
  );
/** What the service has imported, without what names the registry. */
const imports = () =>
  builds.service.requestsTo("POST /v1/images/import").map(({ json }) => {
    const { url } = (json as { registry: { url: string } }).registry;
    return url.slice(`docker://${servers.host}/`.length);
  });

function build(dockerfile: string, ...words: string[]) {
  writeFiles(directory, { Dockerfile: dockerfile });
  return builds.build([".", "--docker", "--lock", "bough.lock", ...words]);
}

/** A build of everything that a lock has, which copies what it fetches for its RUN. */
const whole = () => `FROM ${servers.host}/app:1
ADD http://${servers.host}/file /x/file
ADD ${git}#main /x
RUN make
`;

async function buildWhole(...words: string[]) {
  const [before, after] = [servers.requests.length, imports().length];
  const { exitCode, stderr, texts } = await build(whole(), ...words);
  return {
    ...{ exitCode, stderr, file: texts["/x/file"], foo: texts["/x/foo"] },
    requests: servers.requests.slice(before),
    imports: imports().slice(after),
  };
}

/** Builds on another machine: with nothing stored. */
function elsewhere(...words: string[]) {
  rmSync(builds.home, { recursive: true });
  mkdirSync(builds.home);
  builds.service.state.images.clear();
  builds.service.state.tags.clear();
  return buildWhole(...words);
}

test("the first build writes what everything means, and the next one asks no registry and no repository", async () => {
  const commit = repository.git("rev-parse", "main");
  const first = await buildWhole();
  expect(first).toMatchObject({ exitCode: 0, file: "content\n", foo: "latest\n" });
  const sha256 = digestOf("content\n");
  expect(lockText()).toBe(`{
  "version": 1,
  "references": [
    {
      "kind": "git",
      "name": "${git}#main",
      "commit": "${commit}",
      "ref": "refs/heads/main",
      "dockerfiles": [
        "Dockerfile"
      ]
    },
    {
      "kind": "image",
      "name": "${servers.host}/app:1",
      "digest": "${servers.digestOf("app:1")}",
      "dockerfiles": [
        "Dockerfile"
      ]
    },
    {
      "kind": "url",
      "name": "http://${servers.host}/file",
      "digest": "${sha256}",
      "dockerfiles": [
        "Dockerfile"
      ]
    }
  ]
}
`);
  for (const line of [`${git}#main ${commit}`, `${servers.host}/app:1 ${servers.digestOf("app:1")}`])
    expect(first.stderr).toContain(`[INFO] bough.lock: added ${line}\n`);
  const { ino, mtimeMs } = statSync(lockPath());
  const second = await buildWhole();
  expect(second).toMatchObject({ exitCode: 0, requests: ["HEAD /file"], imports: [] });
  expect(second.stderr).not.toContain("bough.lock");
  expect(statSync(lockPath())).toMatchObject({ ino, mtimeMs });
});

describe("what has moved", () => {
  test("a tag and a branch mean what is locked, on another machine too", async () => {
    await buildWhole();
    const locked = servers.digestOf("app:1");
    servers.tags.set("app:1", "another");
    repository.commit({ foo: "another\n" });
    const other = await elsewhere();
    expect(other).toMatchObject({ exitCode: 0, foo: "latest\n", imports: [`app@${locked}`] });
    expect(other.stderr).toContain(`FROM ${servers.host}/app:1@${locked} is image`);
  });

  test("a URL with another content is an error, and nothing is changed", async () => {
    const dockerfile = `FROM ${servers.host}/app:1\nADD http://${servers.host}/file /x\nRUN make\n`;
    await build(dockerfile);
    const before = lockText();
    servers.files.set("/file", "another\n");
    const { exitCode, stderr } = await build(dockerfile);
    expect(exitCode).toBe(1);
    const url = `http://${servers.host}/file`;
    expect(stderr).toContain(
      `Dockerfile:2: ADD ${url}: the content has the digest ${digestOf("another\n")}, but bough.lock has ${digestOf("content\n")}\n`,
    );
    expect(stderr).toContain(`\`--update-lock=${url}\` takes what it is now`);
    expect(lockText()).toBe(before);
  });

  test("a commit that is gone is an error that names it", async () => {
    await buildWhole();
    const gone = "0".repeat(40);
    const commit = repository.git("rev-parse", "main");
    writeFiles(directory, { "bough.lock": lockText().replace(commit, gone) });
    const { exitCode, stderr } = await buildWhole();
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`${git}: the repository has no commit ${gone}`);
    expect(stderr).toContain(`\`--update-lock='${git}#main'\``);
  });

  test.each([
    ["all", ["--update-lock"], ["app:1", "main", "/file"]],
    ["an image by its name and tag, in a word of its own", ["--update-lock", "HOST/app:1"], ["app:1"]],
    ["an image by its name", ["--update-lock=HOST/app"], ["app:1"]],
    ["a URL", ["--update-lock", "http://HOST/file"], ["/file"]],
    ["a repository and a URL", ["--update-lock=GIT", "--update-lock=http://HOST/file"], ["main", "/file"]],
  ])("--update-lock moves %s", async (_, options, updated) => {
    const hasRepository = updated.includes("main");
    const dockerfile = hasRepository ? whole() : whole().replace(/^ADD .*main.*\n/m, "");
    await build(dockerfile);
    const pins = () => ({
      "app:1": servers.digestOf("app:1"),
      "/file": digestOf(servers.files.get("/file") ?? ""),
      ...(hasRepository && { main: repository.git("rev-parse", "main") }),
    });
    const old = pins();
    servers.tags.set("app:1", "another");
    if (hasRepository) repository.commit({ foo: "another\n" });
    // Else the build fails.
    if (updated.includes("/file")) servers.files.set("/file", "another\n");
    const words = options.map((word) => word.replace("HOST", servers.host).replace("GIT", git));
    const { exitCode, stderr } = await build(dockerfile, ...words);
    expect([exitCode, exitCode === 0 ? "" : stderr]).toEqual([0, ""]);
    const now = Object.entries(pins()).filter(([name]) => updated.includes(name));
    const references: { name: string; digest?: string; commit?: string }[] = JSON.parse(
      lockText(),
    ).references;
    const shortName = (name: string) => /app:1$|main$|\/file$/.exec(name)?.[0];
    const locked = references.map(({ name, digest, commit }) => [shortName(name), digest ?? commit]);
    expect(Object.fromEntries(locked)).toEqual({ ...old, ...Object.fromEntries(now) });
    expect(stderr.match(/bough\.lock: updated /g) ?? []).toHaveLength(updated.length);
  });
});

describe("--locked", () => {
  test.each([
    ["an image", () => `FROM ${servers.host}/app:2\n`, () => `${servers.host}/app:2`],
    [
      "an image that is only copied from",
      () => `FROM ${servers.host}/app:1\nCOPY --from=${servers.host}/app:2 /a /b\n`,
      () => `${servers.host}/app:2`,
    ],
    [
      "a URL",
      () => `FROM ${servers.host}/app:1\nADD http://${servers.host}/file2 /\n`,
      () => `${servers.host}/file2`,
    ],
    ["a repository", () => `FROM ${servers.host}/app:1\nADD ${git}#v1 /x\n`, () => `${git}#v1`],
  ])("refuses %s that the lock lacks, in a build and a check", async (_, dockerfile, name) => {
    await build(`FROM ${servers.host}/app:1\nRUN make\n`);
    const before = lockText();
    for (const words of [[], ["--check"]]) {
      const { exitCode, stderr, stdout } = await build(dockerfile(), "--locked", ...words);
      expect(exitCode).toBe(2);
      expect(stderr + stdout).toContain(`${name()} is not in bough.lock`);
    }
    expect(lockText()).toBe(before);
  });

  test("builds what the lock has, on another machine too", async () => {
    await buildWhole();
    expect(await elsewhere("--locked")).toMatchObject({ exitCode: 0, foo: "latest\n" });
    expect((await build(whole(), "--locked", "--check")).exitCode).toBe(0);
  });
});

describe("an entry", () => {
  const from = (...tags: string[]) =>
    tags.map((tag) => `FROM ${servers.host}/app:${tag}\nRUN make ${tag}\n`).join("");

  test.each([
    ["of a line that is gone goes", () => from("2"), [], ["HOST/app:2"]],
    [
      "of a stage that is not built stays",
      () => `${from("1").replace("\n", " AS unused\n")}${from("2")}`,
      ["--target", "1"],
      ["HOST/app:1", "HOST/app:2"],
    ],
    [
      "that a variable may mean stays",
      () => `ARG TAG=1\nFROM ${servers.host}/app:$TAG\nRUN make\n`,
      ["--build-arg", "TAG=2"],
      ["HOST/app:1", "HOST/app:2"],
    ],
    [
      "that a variable may mean goes with --update-lock",
      () => `ARG TAG=1\nFROM ${servers.host}/app:$TAG\nRUN make\n`,
      ["--build-arg", "TAG=2", "--update-lock"],
      ["HOST/app:2"],
    ],
    [
      "of a digest and of a stage is not needed",
      () => `FROM ${servers.host}/app@${servers.digestOf("app:2")} AS base\nRUN make\nFROM base\nRUN again\n`,
      [],
      [],
    ],
    [
      "of a checksum and of a commit is not needed",
      () =>
        `FROM ${servers.host}/app:1\nADD --checksum=${digestOf("content\n")} http://${servers.host}/file /\nADD ${git}#${template.first} /x\nRUN make\n`,
      [],
      ["HOST/app:1"],
    ],
  ])("%s", async (_, dockerfile, words, expected) => {
    expect((await build(from("1"))).exitCode).toBe(0);
    const { exitCode, stderr } = await build(dockerfile(), ...words);
    expect([exitCode, exitCode === 0 ? "" : stderr]).toEqual([0, ""]);
    expect(lockedNames()).toEqual(expected);
  });

  test("of another Dockerfile stays as long as that one is there", async () => {
    writeFiles(directory, { "ci/Dockerfile": from("2") });
    expect((await build(from("1"), "--dockerfile", "ci/Dockerfile")).exitCode).toBe(0);
    await build(from("1"));
    expect(JSON.parse(lockText()).references).toMatchObject([
      { name: `${servers.host}/app:1`, dockerfiles: ["Dockerfile"] },
      { name: `${servers.host}/app:2`, dockerfiles: ["ci/Dockerfile"] },
    ]);
    rmSync(join(directory, "ci"), { recursive: true });
    expect((await build(from("1"))).stderr).toContain(`bough.lock: dropped ${servers.host}/app:2\n`);
    expect(lockedNames()).toEqual(["HOST/app:1"]);
  });

  test("of a --build-context stays until --update-lock, and means the same while it does", async () => {
    const contexts = [
      ...["--build-context", `base=docker-image://${servers.host}/app:2`],
      ...["--build-context", `src=${git}#main`, "--build-context", `file=http://${servers.host}/file`],
    ];
    const dockerfile = "FROM base\nCOPY --from=src foo /x/\nCOPY --from=file context /x/\nRUN make\n";
    const names = [`${git}#main`, "HOST/app:2", "http://HOST/file"];
    expect((await build(dockerfile, ...contexts)).texts).toMatchObject({ "/x/foo": "latest\n" });
    expect(lockedNames()).toEqual(names);
    repository.commit({ foo: "another\n" });
    expect((await build(`${dockerfile}RUN again\n`, ...contexts, "--no-cache")).texts).toMatchObject({});
    expect(JSON.parse(lockText()).references[0].commit).toBe(repository.git("rev-parse", "main~1"));
    servers.files.set("/file", "another\n");
    const changed = await build(dockerfile, ...contexts);
    expect(changed.exitCode).toBe(1);
    expect(changed.stderr).toContain(
      `the build context file at http://${servers.host}/file: the content has the digest`,
    );
    await build(from("1"));
    expect(lockedNames()).toEqual([`${git}#main`, "HOST/app:1", "HOST/app:2", "http://HOST/file"]);
    await build(from("1"), "--update-lock");
    expect(lockedNames()).toEqual(["HOST/app:1"]);
  });

  test("has no password, no token and no secret build argument", async () => {
    const url = `http://user:hunter2@${servers.host}/file?token=tok3n&part=$API_TOKEN`;
    const dockerfile = `FROM ${servers.host}/app:1\nARG API_TOKEN\nADD ${url} /x/file\nADD ${git.replace("//", "//user:hunter2@")} /x\nRUN make\n`;
    const { exitCode, stderr } = await build(dockerfile, "--build-arg", "API_TOKEN=s3cr3t-value");
    expect(exitCode).toBe(0);
    for (const text of [lockText(), stderr]) expect(text).not.toMatch(/hunter2|tok3n|s3cr3t/);
    expect(lockedNames()).toEqual([git, "HOST/app:1", "http://HOST/file?token=***&part=***"]);
    expect((await build(dockerfile, "--build-arg", "API_TOKEN=s3cr3t-value", "--locked")).exitCode).toBe(0);
  });
});

test("a build that fails writes no lock", async () => {
  const { exitCode } = await build(`${whole()}ADD http://${servers.host}/none /\n`);
  expect([exitCode, existsSync(lockPath())]).toEqual([1, false]);
});

test("two builds at once keep the entries of both", async () => {
  writeFiles(directory, {
    one: `FROM ${servers.host}/app:1\nRUN one\n`,
    two: `FROM ${servers.host}/app:2\nRUN two\n`,
  });
  const ended = await Promise.all(
    ["one", "two"].map((name) => builds.build([".", "--lock", "bough.lock", "--dockerfile", name])),
  );
  expect(ended.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
  expect(lockedNames()).toEqual(["HOST/app:1", "HOST/app:2"]);
});

test("a name of the service is left out, which the build says", async () => {
  const { exitCode, stderr } = await build("FROM tag:base:1\nRUN make\n");
  expect(exitCode).toBe(0);
  expect(stderr).toContain(
    "[WARN] bough.lock leaves out tag:base:1: it is a name of the service, not of a registry\n",
  );
  expect(lockedNames()).toEqual([]);
});

test("a name that the service has of itself is not taken for the registry's, unless --pull says so", async () => {
  const name = `${servers.host}/app:1`;
  builds.service.state.addImage(name);
  const refused = await build(`FROM ${name}\nRUN make\n`);
  expect([refused.exitCode, existsSync(lockPath())]).toEqual([1, false]);
  expect(refused.stderr).toContain(`--build-context ${name}=docker-image://tag:${name}`);
  expect((await build(`FROM ${name}\nRUN make\n`, "--pull")).exitCode).toBe(0);
  expect(imports()).toEqual([`app@${servers.digestOf("app:1")}`]);
});

test.each([
  ["no such tag", () => `${servers.host}/app:3`, /has no tag 3\n/],
  ["no such registry", () => "127.0.0.1:1/app:3", /GET http:\/\/127\.0\.0\.1:1\/v2\/: connection refused\n/],
])("an image that no registry has can't be locked: %s", async (_, name, reason) => {
  const { exitCode, stderr } = await build(`FROM ${name()}\nRUN make\n`);
  expect(exitCode).toBe(1);
  expect(stderr).toContain(`Dockerfile:1: ${name()} cannot be locked: `);
  expect(stderr).toMatch(reason);
  expect(stderr).toContain("Check the name, and that this machine can reach its registry.");
});

test("a lock that can't be written is an error, although the image is built", async () => {
  const service = await startFakeService({
    run: () => void rmSync(join(directory, "locks"), { recursive: true }),
  });
  builds.closeLater(service);
  writeFiles(directory, { Dockerfile: `FROM ${servers.host}/app:1\nRUN make\n` });
  mkdirSync(join(directory, "locks"));
  const words = ["build", ".", "--lock", "locks/bough.lock"];
  const { exitCode, stderr } = await boughOn(service, words, {
    ...{ context: directory, state: temporaryDirectory() },
  });
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(/cannot write --lock locks\/bough\.lock: .*\nThe image is built: build again/);
});

test("a link to a lock stays one", async () => {
  await build(`FROM ${servers.host}/app:1\nRUN make\n`);
  const place = join(temporaryDirectory(), "shared.lock");
  renameSync(lockPath(), place);
  symlinkSync(place, lockPath());
  await build(`FROM ${servers.host}/app:2\nRUN make\n`);
  expect(lockedNames()).toEqual(["HOST/app:2"]);
  expect(readFileSync(place, "utf8")).toBe(lockText());
});

test("--explain names a base that --update-lock has moved", async () => {
  const dockerfile = `FROM ${servers.host}/app:1\nRUN make\n`;
  await build(dockerfile);
  servers.tags.set("app:1", "another");
  const { stderr } = await build(dockerfile, "--update-lock", "--explain");
  expect(stderr).toContain("not cached: line 2, RUN make: the base image has changed");
});

describe("is refused, and nothing is built:", () => {
  const valid = `{"version": 1, "references": [{"kind": "image", "name": "a:1", "digest": "${digestOf("")}"}]}`;
  const oneOf = (text: string) => `{"version": 1, "references": [${text}]}`;
  test.each([
    ["a text", "FROM x\n", [], "this is not a lock of bough: JSON Parse error"],
    ["a conflict", `<<<<<<< a\n${valid}\n`, [], "Resolve the conflict of git in it"],
    ["another JSON", "[]", [], "it is no JSON object"],
    ["no version", "{}", [], "its version is undefined"],
    ["a newer version", '{"version": 2}', [], "was written by a newer bough (version 2 of the format)"],
    ["no list", '{"version": 1}', [], "it has no list `references`"],
    ["another kind", oneOf('{"kind": "x", "name": "a"}'), [], 'a: unknown kind "x"'],
    ["no name", oneOf('{"kind": "url"}'), [], "reference 1: it has no name"],
    ["a wrong digest", valid.replace("sha256", "md5"), [], "a:1: its digest is not sha256:"],
    [
      "a wrong commit",
      oneOf('{"kind": "git", "name": "a", "commit": "main"}'),
      [],
      "its commit is not the hash",
    ],
    [
      "a ref that is an option",
      oneOf(`{"kind": "git", "name": "a", "commit": "${"a".repeat(40)}", "ref": "--upload-pack=x"}`),
      [],
      "its ref is not the full name of one",
    ],
    ["one name twice", valid.replace(/\[(.*)\]/, "[$1, $1]"), [], "it has two entries for a:1"],
    [
      "an unknown name",
      valid,
      ["--update-lock=b:1"],
      "--update-lock=b:1: bough.lock has no entry of that name",
    ],
    [
      "a mistyped name",
      valid.replace("a:1", "alpine:1"),
      ["--update-lock", "alpin:1"],
      "Did you mean alpine:1?",
    ],
    ["--locked with --update-lock", valid, ["--locked", "--update-lock"], "cannot be used together"],
    ["--locked without a file", undefined, ["--locked"], "--lock bough.lock: no such file"],
    ["another result's file", valid, ["--metadata-file", "./bough.lock"], "are the same file"],
  ])("%s", async (_, text, words, message) => {
    if (text !== undefined) writeFiles(directory, { "bough.lock": text });
    const { exitCode, stderr, requests } = await build(whole(), ...words);
    expect({ exitCode, requests }).toEqual({ exitCode: 2, requests: [] });
    expect(stderr).toContain(message);
    if (text !== undefined) expect(lockText()).toBe(text);
  });

  test.each([
    ["a directory", () => mkdirSync(lockPath()), ["--lock", "bough.lock"], "this is not a file"],
    ["no directory", () => {}, ["--lock", "none/bough.lock"], "there is no directory none"],
    ["no value", () => {}, ["--lock="], "--lock needs a value"],
    ["--locked alone", () => {}, ["--locked"], "--locked needs --lock"],
    ["--update-lock alone", () => {}, ["--update-lock"], "--update-lock needs --lock"],
  ])("%s", async (_, prepare, words, message) => {
    prepare();
    writeFiles(directory, { Dockerfile: whole() });
    const { exitCode, stderr, requests } = await builds.build([".", "--docker", ...words]);
    expect({ exitCode, requests }).toEqual({ exitCode: 2, requests: [] });
    expect(stderr).toContain(message);
  });
});

test("on a service of six calls, which knows no digests, the locked image is imported once", async () => {
  const service = await startFakeService({ sixCallsOnly: true });
  builds.closeLater(service);
  const state = temporaryDirectory();
  writeFiles(directory, { Dockerfile: `FROM ${servers.host}/app:1\nRUN make\n` });
  const build = async () => {
    const ended = await boughOn(service, ["build", ".", "--lock", "bough.lock"], {
      context: directory,
      state,
    });
    const urls = service.requestsTo("POST /v1/images/import").length;
    return { exitCode: ended.exitCode, runs: ended.runs, imports: urls };
  };
  expect(await build()).toEqual({ exitCode: 0, runs: ["make"], imports: 1 });
  servers.tags.set("app:1", "another");
  expect(await build()).toEqual({ exitCode: 0, runs: [], imports: 1 });
});
