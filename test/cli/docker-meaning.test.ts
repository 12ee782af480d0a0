/** What a Dockerfile and its options mean in newer versions of Docker, built by `bough build --docker` on the engine. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";

const environment = { BOUGH_HOME: temporaryDirectory(), BOUGH_DOCKER: "1" };
const directory = temporaryDirectory();

const bough = (words: readonly string[], workingDirectory = directory) =>
  runBough(["--local", ...words], { workingDirectory, environment });

/** Builds in a directory with these files. */
function build(dockerfile: string, options: readonly string[] = [], files: Record<string, FileSpec> = {}) {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: dockerfile, ...files });
  return bough(["build", ".", "--progress", "plain", ...options], context);
}

beforeAll(async () => {
  const layout = await makeBusyboxLayout(temporaryDirectory());
  expect((await bough(["images", "import", layout, "--tag", "base:1"])).exitCode).toBe(0);
});
afterAll(() => {
  for (const each of [environment.BOUGH_HOME, directory]) rmSync(each, { recursive: true, force: true });
});

test("a tag may have capital letters: in --tag, tag, FROM, an archive's names and rmi", async () => {
  const tag = "localhost:5000/team/app:1.0-SNAPSHOT";
  expect((await build("FROM base:1\nRUN echo made > /made\n", ["--tag", tag])).exitCode).toBe(0);
  expect((await bough(["tag", tag, "app:RC1"])).exitCode).toBe(0);
  expect((await bough(["images", "export", tag, `docker-archive:saved.tar:${tag}`])).exitCode).toBe(0);
  expect((await bough(["rmi", "--force", tag, "app:RC1"])).exitCode).toBe(0);
  const imported = await bough(["-f", "json", "images", "import", "docker-archive:saved.tar"]);
  expect(JSON.parse(imported.stdout)).toMatchObject({ tag });
  expect((await build(`FROM ${tag}\nRUN cat /made\n`)).stderr).toContain("\nmade\n");
  const refused = await build("FROM base:1\n", ["--tag", "shop:1:2"]);
  expect(refused).toMatchObject({ exitCode: 2 });
  expect(refused.stderr).toContain('not a tag: "shop:1:2": "shop:1" is not a valid repository name');
});

test.each([[[]], [["--jobs", "1"]]])(
  "a base image's ONBUILD finds the stages of the Dockerfile that uses it %p",
  async (options) => {
    const triggers = "ONBUILD COPY --from=builder /x /\nONBUILD RUN --mount=from=1,target=/m cp /m/y /y\n";
    expect((await build(`FROM base:1\n${triggers}`, ["--tag", "ob:1"])).exitCode).toBe(0);
    const stages = "FROM base:1 AS builder\nRUN echo from builder > /x\nFROM builder\nRUN echo of 1 > /y\n";
    const built = await build(`${stages}FROM ob:1\nRUN cat /x /y\n`, options);
    expect(built.exitCode).toBe(0);
    expect(built.stderr).toMatch(/from builder\n.*of 1\n/);
    const failed = await build(`${stages}RUN echo broken; exit 3\nFROM ob:1\n`, options);
    expect(failed.stderr).toContain("exit code 3");
    expect(failed.stderr).not.toContain("ONBUILD COPY");
    const later = await build(`FROM ob:1\nFROM base:1 AS builder\n`, [...options, "--target", "0"]);
    expect(later.stderr).toContain("--from=builder: that stage is defined later, on line 2");
  },
);
