/** `bough bake ADDRESS`: bake files of a git repository, an archive, or alone at an address. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import {
  type GitServer,
  makeRepository,
  repositoriesDirectory,
  serveRepositories,
} from "../support/git-server.ts";

const bakeFile = `
  group "default" { targets = ["root", "sub"] }
  target "root" { args = { CONTEXT = BAKE_CMD_CONTEXT } }
  target "sub" {
    context = "./sub"
    contexts = { whole = ".", other = "dir", image = "docker-image://base" }
  }
  target "dir" {
    context = "dir"
    dockerfile = "nested/File"
  }
  target "up" { context = "../" }
  target "mine" {
    dockerfile = "cwd://own/Dockerfile"
    contexts = { here = "cwd://own" }
  }
  target "here" {
    context = BAKE_CMD_CONTEXT
    dockerfile = "cwd://Dockerfile"
  }
  target "mixed" { context = "cwd://own" }
  target "none" { context = "absent" }
`;
const files = {
  "docker-bake.hcl": bakeFile,
  "more.hcl": 'target "root" { tags = ["more"] }',
  "compose.yaml":
    "include: [lib/compose.yaml]\nservices:\n  service: {build: {context: ., args: {NAME: $NAME}}}\n",
  ".env": "NAME=of the repository\n",
  "lib/compose.yaml": "services:\n  included: {build: .}\n",
  "dir/docker-bake.json": '{"target": {"default": {"args": {"AT": "${BAKE_CMD_CONTEXT}"}}}}',
  "dir/nested/File": "FROM scratch\nCOPY text /nested\n",
  "dir/Dockerfile": "FROM scratch\nCOPY text /text\n",
  "dir/text": "text of dir\n",
  "sub/Dockerfile":
    "FROM scratch\nCOPY text /\nCOPY --from=whole text /whole\nCOPY --from=other text /other\n",
  "sub/text": "text of sub\n",
  Dockerfile: "FROM scratch\nARG CONTEXT\nCOPY text /\nLABEL context=$CONTEXT\n",
  text: "text of root\n",
};
const own = {
  "own/Dockerfile": "FROM scratch\nCOPY text /\nCOPY --from=here mine /\n",
  "own/mine": "mine\n",
  Dockerfile: "FROM scratch\nCOPY mine /\n",
  mine: "of here\n",
  "local.hcl": 'target "root" { labels = { from = "here" } }',
};

let git: GitServer;
let archives: ReturnType<typeof Bun.serve>;
const place = temporaryDirectory();
beforeAll(() => {
  const root = repositoriesDirectory();
  const app = makeRepository(join(root, "app.git"));
  app.commit(files);
  git = serveRepositories(root);
  mkdirSync(join(place, "work"));
  writeFiles(join(place, "work"), own);
  const archive = join(place, "app.tgz");
  app.git("archive", "--format=tgz", `--output=${archive}`, "main");
  archives = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => {
      const { pathname } = new URL(url);
      if (pathname === "/app.tgz") return new Response(Bun.file(archive));
      if (pathname === "/alone.hcl")
        return new Response(`${bakeFile}\n${"# a comment\n".repeat(200)}target "last" {}`);
      if (pathname === "/large") return new Response("# too large\n".repeat(200_000));
      return new Response("none", { status: 404 });
    },
  });
});
afterAll(async () => {
  await git.stop();
  await archives.stop(true);
});

const bake = (words: string[], environment: Record<string, string> = {}) =>
  runBough(["--local", "bake", ...words], {
    workingDirectory: join(place, "work"),
    environment: { BOUGH_HOME: join(place, "home"), ...environment },
  });

async function print(words: string[], environment?: Record<string, string>) {
  const { exitCode, stdout, stderr } = await bake([...words, "--print"], environment);
  expect({ exitCode, stderr: exitCode === 0 ? "" : stderr }).toEqual({ exitCode: 0, stderr: "" });
  return JSON.parse(stdout);
}

describe("what docker buildx bake prints of a repository", () => {
  const repository = () => `${git.url}/app.git`;

  test("the root is its address, and other paths are as they are written", async () => {
    const { target } = await print([repository()]);
    expect(target).toEqual({
      root: { context: repository(), dockerfile: "Dockerfile", args: { CONTEXT: "cwd://" } },
      sub: {
        context: "sub",
        contexts: { whole: ".", other: "dir", image: "docker-image://base" },
        dockerfile: "Dockerfile",
      },
    });
  });

  test("a branch and a directory, with another file of a usual name", async () => {
    const address = `${repository()}#main:dir`;
    const { target } = await print([address]);
    expect(target.default).toEqual({ context: address, dockerfile: "Dockerfile", args: { AT: "cwd://" } });
  });

  test("the second address is BAKE_CMD_CONTEXT", async () => {
    const context = `${archives.url.href}app.tgz`;
    const { target } = await print([repository(), context, "root", "here"]);
    expect(target.root.args).toEqual({ CONTEXT: context });
    expect(target.here.context).toBe(context);
  });

  test("paths that lead above the root, and those of this machine", async () => {
    const { target } = await print([repository(), "up", "here"]);
    expect(target.up.context).toBe("..");
    expect(target.here).toEqual({ context: ".", dockerfile: "cwd://Dockerfile" });
  });

  test("files are those of the repository, or with cwd:// of this directory, which come last", async () => {
    const named = await print([repository(), "-f", "cwd://local.hcl", "-f", "more.hcl", "root"]);
    expect(named.target.root).toEqual({
      context: repository(),
      dockerfile: "Dockerfile",
      labels: { from: "here" },
      tags: ["more"],
    });
    const usual = await print([repository(), "-f", "cwd://local.hcl", "root"]);
    expect(usual.target.root).toMatchObject({ args: { CONTEXT: "cwd://" }, labels: { from: "here" } });
  });

  test("a compose file includes those of the repository, and takes its variables from there", async () => {
    const { target } = await print([repository(), "-f", "compose.yaml", "service", "included"]);
    expect(target.service).toMatchObject({ context: repository(), args: { NAME: "of the repository" } });
    expect(target.included.context).toBe("lib");
  });

  test.each<[string, string, string[]]>([
    ["a file that is not there", "-f absent.hcl: no such file in http", ["-f", "absent.hcl"]],
    ["a target that is not there", "there is no target nope", ["nope"]],
    ["a Dockerfile of the repository for a context here", 'write dockerfile = "cwd://Dockerfile"', ["mixed"]],
  ])("%s is an error", async (_, message, words) => {
    const { exitCode, stderr } = await bake([repository(), ...words, "--print"]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(message);
  });
});

test("contexts of a repository are built as they are in the commit, and it is fetched once", async () => {
  const before = git.requests.length;
  const words = ["root", "sub", "dir", "up", "mine", "here"];
  const sets = words.flatMap((name) => ["--set", `${name}.output=type=local,dest=out/${name}`]);
  const { exitCode, stderr } = await bake([`${git.url}/app.git`, ...words, ...sets]);
  expect({ exitCode, stderr: exitCode === 0 ? "" : stderr }).toEqual({ exitCode: 0, stderr: "" });
  const text = (path: string) => Bun.file(join(place, "work/out", path)).text();
  expect(
    await Promise.all(["root/text", "up/text", "sub/text", "dir/nested", "mine/text"].map(text)),
  ).toEqual(["root", "root", "sub", "dir", "root"].map((name) => `text of ${name}\n`));
  expect(await Promise.all(["sub/whole", "sub/other"].map(text))).toEqual([
    "text of root\n",
    "text of dir\n",
  ]);
  expect(await Promise.all(["mine/mine", "here/mine"].map(text))).toEqual(["mine\n", "of here\n"]);
  // The names of its refs, the protocol, and the commit.
  expect(git.requests.length - before).toBeLessThanOrEqual(5);
});

test("a directory that the repository lacks is an error of the target", async () => {
  const { exitCode, stderr } = await bake([`${git.url}/app.git`, "none"]);
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(/target none \(docker-bake\.hcl:\d+\): absent: http\S+ has no such directory/);
});

test("targets of a repository are checked and described, too", async () => {
  const checked = await bake([`${git.url}/app.git`, "--check", "dir"]);
  expect(checked).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^dir\n\nCheck complete/) });
});

test("a private repository takes buildx's variable", async () => {
  const authorization = `Basic ${Buffer.from("x-access-token:t0ken").toString("base64")}`;
  const root = repositoriesDirectory();
  makeRepository(join(root, "own.git")).commit(files);
  const server = serveRepositories(root, { authorization });
  const address = `${server.url}/own.git`;
  expect((await bake([address, "--print"])).exitCode).toBe(1);
  const given = await bake([address, "dir"], { BUILDX_BAKE_GIT_AUTH_TOKEN: "t0ken" });
  expect(given).toMatchObject({ exitCode: 0 });
  expect(given.stderr).not.toContain("t0ken");
  await server.stop();
});

test("an archive has contexts, too", async () => {
  const address = `${archives.url.href}app.tgz`;
  const { target } = await print([address, "root", "sub"]);
  expect([target.root.context, target.sub.context]).toEqual([address, "sub"]);
  const set = ["--set", "sub.output=type=local,dest=out/archived"];
  expect(await bake([address, "sub", ...set])).toMatchObject({ exitCode: 0 });
  expect(await Bun.file(join(place, "work/out/archived/whole")).text()).toBe("text of root\n");
});

describe("a bake file alone at an address", () => {
  test("its paths are those of this machine, and it is read whole", async () => {
    const { target } = await print([`${archives.url.href}alone.hcl`, "root", "here", "last"]);
    expect([target.root.context, target.here.context, target.last.context]).toEqual([".", ".", "."]);
  });

  test.each<[string, string, string[]]>([
    ["another file", "write -f cwd://more.hcl", ["alone.hcl", "-f", "more.hcl"]],
    ["more than 2 MB", "is larger than 2 MB", ["large"]],
  ])("%s is refused", async (_, message, [path, ...words]) => {
    const { exitCode, stderr } = await bake([`${archives.url.href}${path}`, ...words, "--print"]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(message);
  });

  test("an address without a file", async () => {
    const { exitCode, stderr } = await bake([`${archives.url.href}absent`, "--print"]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("404");
  });
});
