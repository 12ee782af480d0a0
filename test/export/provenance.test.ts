/** `bough build --provenance`: what is stored beside an image, and where; it contains no secret. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hideExtensions } from "../docker/plain-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { TestEngine } from "../support/engine.ts";
import { writeFiles } from "../support/files.ts";
import { commitTime, type GitServer, makeRepository, serveRepositories } from "../support/git-server.ts";
import { problemsOfArchive, problemsOfLayout } from "../support/image-spec.ts";
import { Registry } from "../support/registry.ts";

setDefaultTimeout(120_000);

const places = temporaryDirectory();
const epoch = { SOURCE_DATE_EPOCH: "1700000000" };
const homes: string[] = [];
let registry: Registry;
let web: ReturnType<typeof Bun.serve>;
let repositories: GitServer;
let commit: string;
let base: string;

const secret = "hunter2-hunter2";
const dockerfile = () =>
  [
    "FROM base:1",
    "ARG VERSION",
    "ARG API_TOKEN SAME HARMLESS",
    "ARG PROXY",
    "COPY app /app",
    "COPY --from=other:1 /etc/passwd /other",
    `ADD ${web.url}file /added`,
    `ADD ${repositories.url.replace("://", `://me:${secret}@`)}/app.git?mtime=commit#v1 /repository`,
    `RUN stat -c %Y:%U /repository/a | grep -qx ${commitTime}:root`,
    "RUN --mount=type=secret,id=password --mount=type=bind,source=only-here,target=/here cat /here >/dev/null",
    "",
  ].join("\n");

beforeAll(async () => {
  registry = await Registry.start();
  web = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("from the web\n") });
  const { commit: add, git } = makeRepository(join(places, "repositories/app.git"));
  commit = add({ a: "a\n" });
  git("tag", "v1");
  repositories = serveRepositories(join(places, "repositories"));
  base = await makeBusyboxLayout(join(places, "base"));
  writeFiles(join(places, "context"), {
    Dockerfile: dockerfile(),
    "app/b": "b\n",
    "app/ä": "a\n",
    "only-here": "x\n",
    unused: "not taken\n",
  });
  writeFiles(places, { password: "a-secret-of-the-build\n" });
  for (let number = 0; number < 2; number++) {
    const home = temporaryDirectory();
    homes.push(home);
    for (const tag of ["base:1", "other:1"]) {
      const ended = await bough(home, ["images", "import", base, "--tag", tag]);
      if (ended.exitCode !== 0) throw new Error(ended.stderr);
    }
  }
});
afterAll(async () => {
  await Promise.all([registry?.stop(), web?.stop(true), repositories?.stop()]);
});

const bough = (home = "", words: readonly string[], environment = {}) =>
  runBough(["--local", "-q", ...words], {
    workingDirectory: places,
    environment: { BOUGH_HOME: home, ...epoch, ...environment },
  });

const given = [
  ...["build", "context", "--docker", "--provenance", "--build-arg", "VERSION=1.2"],
  ...["--build-arg", `API_TOKEN=${secret}`, "--build-arg", `PROXY=http://me:${secret}@proxy.example/`],
  ...["--build-arg", "SAME=a-secret-of-the-build", "--build-arg", `HARMLESS=ghp_${"a1".repeat(18)}`],
  ...["--secret", "id=password,src=password"],
];

async function build(home = "", ...words: string[]): Promise<void> {
  const { exitCode, stderr } = await bough(home, [...given, "--tag", "app:1", ...words]);
  if (exitCode !== 0) throw new Error(stderr);
}

/** The only statement in a layout. */
function statementIn(directory: string) {
  const blobs = join(directory, "blobs/sha256");
  const texts = readdirSync(blobs).map((name) => readFileSync(join(blobs, name), "latin1"));
  const [found, ...more] = texts.filter((text) => text.startsWith('{"_type"'));
  expect(more).toEqual([]);
  return JSON.parse(Buffer.from(found ?? "", "latin1").toString());
}

const sha256 = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");

test("lists what the image was made from, and nothing else", async () => {
  await build(homes[0], "-o", "type=oci,dest=layout,tar=false");
  expect(problemsOfLayout(join(places, "layout"))).toEqual([]);
  const statement = statementIn(join(places, "layout"));
  const layout = JSON.parse(readFileSync(join(places, "base/index.json"), "utf8"));
  const manifest = layout.manifests[0].digest.replace("sha256:", "");
  const { layers } = JSON.parse(readFileSync(join(places, "base/blobs/sha256", manifest), "utf8"));
  const taken = ["app/b", "app/ä", "only-here"].map(
    (path) => `${sha256(readFileSync(join(places, "context", path), "utf8"))}  ${path}\n`,
  );
  const imported = (name: string) => ({
    uri: `pkg:docker/${name}?platform=linux%2F${process.arch === "arm64" ? "arm64" : "amd64"}`,
    annotations: { layers: [layers[0].digest] },
  });
  expect(statement.predicate.buildDefinition).toEqual({
    buildType: "urn:bough:dockerfile:v1",
    externalParameters: {
      dockerfile: "Dockerfile",
      mode: "docker",
      buildArgs: { VERSION: "1.2", SOURCE_DATE_EPOCH: "1700000000" },
      withheldBuildArgs: ["API_TOKEN", "HARMLESS", "PROXY", "SAME"],
    },
    resolvedDependencies: [
      { name: "Dockerfile", digest: { sha256: sha256(dockerfile()) } },
      { name: "context", digest: { sha256: sha256(taken.join("")) } },
      imported("base@1"),
      imported("other@1"),
      { uri: `${web.url}file`, digest: { sha256: sha256("from the web\n") } },
      { uri: `git+${repositories.url}/app.git@refs/tags/v1`, digest: { gitCommit: commit } },
    ],
  });
  expect(statement.predicate.runDetails.metadata).toEqual({ finishedOn: "2023-11-14T22:13:20.000Z" });
  expect(statement.subject[0].name).toStartWith("pkg:docker/app@1?platform=linux%2F");
  const text = JSON.stringify(statement);
  for (const hidden of [secret, "ghp_", "a-secret", "password", places, "unused"])
    expect(text).not.toContain(hidden);
});

test("names the commit of a context that is a repository", async () => {
  const { commit: add } = makeRepository(join(places, "repositories/context.git"));
  const commit = add({ Dockerfile: "FROM base:1\nCOPY . /x\nRUN :\n" });
  const context = `${repositories.url.replace("://", `://me:${secret}@`)}/context.git`;
  const words = ["build", context, "--docker", "--provenance", "-o", "type=oci,dest=fetched,tar=false"];
  const { exitCode, stderr } = await bough(homes[0], words);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  const { buildDefinition } = statementIn(join(places, "fetched")).predicate;
  expect(buildDefinition.externalParameters.dockerfile).toBe("Dockerfile");
  expect(buildDefinition.resolvedDependencies).toContainEqual({
    uri: `git+${repositories.url}/context.git@refs/heads/main`,
    digest: { gitCommit: commit },
  });
});

test("names the origin of named contexts that are fetched", async () => {
  const { commit: add } = makeRepository(join(places, "repositories/named.git"));
  const commit = add({ f: "f\n" });
  writeFiles(join(places, "addresses"), {
    Dockerfile:
      "FROM base:1\nCOPY --from=src . /x\nRUN --mount=from=web,target=/m cp /m/context /y\nFROM base:1 AS unused\nCOPY --from=unused . /\n",
  });
  const login = `://me:${secret}@`;
  const words = [
    "build",
    "addresses",
    "--target",
    "0",
    "--provenance",
    "-o",
    "type=oci,dest=addresses-layout,tar=false",
  ];
  for (const [name, address] of [
    ["src", `${repositories.url}/named.git`],
    ["web", `${web.url}file`],
    ["unused", `${repositories.url}/app.git`],
  ] as const)
    words.push("--build-context", `${name}=${address.replace("://", login)}`);
  const { exitCode, stderr } = await bough(homes[0], words);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  const statement = statementIn(join(places, "addresses-layout"));
  const { resolvedDependencies } = statement.predicate.buildDefinition;
  const digestOf = (list: string) => ({ sha256: sha256(list) });
  const text = "from the web\n";
  expect(resolvedDependencies.slice(2)).toEqual([
    { name: "context src", digest: digestOf(`${sha256("f\n")}  f\n`) },
    { name: "context web", digest: digestOf(`${sha256(text)}  context\n`) },
    expect.objectContaining({ uri: expect.stringContaining("pkg:docker/base@1") }),
    { uri: `${web.url}file`, digest: digestOf(text) },
    { uri: `git+${repositories.url}/named.git@refs/heads/main`, digest: { gitCommit: commit } },
  ]);
  expect(JSON.stringify(statement)).not.toContain(secret);
});

test("lists the files of each named context, and a layout without its path", async () => {
  writeFiles(join(places, "named"), {
    "app/Dockerfile":
      "FROM tools AS tools\nFROM base:1\nCOPY --from=lib f /x\nCOPY f /y\nCOPY --from=tools /etc/passwd /z\n",
    "app/f": "main\n",
    "lib/f": "lib\n",
  });
  const contexts = ["--build-context", "lib=named/lib", "--build-context", "tools=oci-layout://base"];
  const words = [
    "build",
    "named/app",
    ...contexts,
    "--provenance",
    "-o",
    "type=oci,dest=named-layout,tar=false",
  ];
  const { exitCode, stderr } = await bough(homes[0], words);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  const statement = statementIn(join(places, "named-layout"));
  const { resolvedDependencies } = statement.predicate.buildDefinition;
  const fileOf = (text: string) => ({ sha256: sha256(`${sha256(text)}  f\n`) });
  expect(resolvedDependencies).toContainEqual({ name: "context", digest: fileOf("main\n") });
  expect(resolvedDependencies).toContainEqual({ name: "context lib", digest: fileOf("lib\n") });
  expect(resolvedDependencies).toContainEqual({
    uri: expect.stringMatching(/^urn:uuid:/),
    name: "context tools",
    annotations: { layers: [expect.stringMatching(/^sha256:/)] },
  });
  expect(JSON.stringify(statement)).not.toContain(places);
});

test("has the same bytes in another build and on another machine with SOURCE_DATE_EPOCH", async () => {
  const output = (name: string) => `type=oci,dest=${name}.tar,rewrite-timestamp=true`;
  await build(homes[0], "-o", output("one"));
  await build(homes[0], "-o", output("again"));
  await build(homes[1], "-o", output("other"));
  expect(problemsOfArchive(join(places, "one.tar"), temporaryDirectory())).toEqual([]);
  const [one, ...others] = ["one", "again", "other"].map((name) => readFileSync(join(places, `${name}.tar`)));
  for (const other of others) expect(other.equals(one ?? Buffer.alloc(0))).toBe(true);
});

describe("other programs", () => {
  test("find it in a registry, beside the image", async () => {
    const name = `${registry.host}/app:1`;
    const { exitCode } = await bough(homes[0], [...given, "--tag", name, "--push"]);
    expect(exitCode).toBe(0);
    const inspect = (...words: string[]) =>
      JSON.parse(
        Bun.spawnSync([
          ...["skopeo", "inspect", "--tls-verify=false", ...words],
          `docker://${name}`,
        ]).stdout.toString(),
      );
    const { manifests } = inspect("--raw");
    expect(manifests.map(({ platform }: { platform: { os: string } }) => platform.os)).toEqual([
      "linux",
      "unknown",
    ]);
    expect(inspect("--config").config.Env).toBeArray();
    // A second push, which sends nothing, and an import by another engine.
    expect((await bough(homes[0], [...given, "--tag", name, "--push"])).exitCode).toBe(0);
    const pulled = await bough(temporaryDirectory(), ["images", "import", name]);
    expect(pulled).toMatchObject({ exitCode: 0, stderr: "" });
  });

  test("read an image with provenance", async () => {
    await build(homes[0], "-o", "type=oci,dest=beside.tar");
    const storage = ["--root", join(places, "storage"), "--runroot", join(places, "run")];
    const from = ["from", "--quiet", "oci-archive:beside.tar"];
    const { success, stderr } = Bun.spawnSync(["buildah", ...storage, "--storage-driver", "vfs", ...from], {
      cwd: places,
    });
    expect(stderr.toString()).toBe("");
    expect(success).toBe(true);
  });
});

test.each([
  [[], "--provenance needs an image that is written or pushed"],
  [["-o", "type=docker,dest=x"], "type=docker does not support it"],
  [["-o", "out"], "type=local does not support it"],
  [["-o", "-"], "type=tar does not support it"],
])("is refused for outputs that cannot have it: %j", async (words, problem) => {
  const { exitCode, stderr } = await bough(homes[0], ["build", "context", "--provenance", ...words]);
  expect(stderr).toContain(problem);
  expect(exitCode).toBe(2);
});

test("names a base by its UUID on a service without layers", async () => {
  const engine = await TestEngine.open();
  const service = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: hideExtensions((request) => engine.engine.fetch(request)),
  });
  try {
    await engine.importBase();
    writeFiles(join(places, "plain"), { Dockerfile: "FROM busybox:latest\nRUN true\n" });
    const words = ["build", "plain", "--provenance", "-o", "type=oci,dest=remote,tar=false"];
    const { exitCode, stderr } = await runBough(words, {
      workingDirectory: places,
      environment: {
        BOUGH_HOME: homes[1] ?? "",
        CONTREE_URL: service.url.href,
        CONTREE_TOKEN: "t0ken-t0ken",
      },
    });
    expect(stderr).not.toContain("ERROR");
    expect(exitCode).toBe(0);
    const [, , dependency] = statementIn(join(places, "remote")).predicate.buildDefinition
      .resolvedDependencies;
    expect(dependency).toEqual({
      name: "busybox:latest",
      uri: expect.stringMatching(/^urn:uuid:[0-9a-f-]{36}$/),
    });
  } finally {
    await service.stop(true);
    await engine.close();
  }
});
