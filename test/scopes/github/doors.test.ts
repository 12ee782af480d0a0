/** GitHub's cache through bake files, compose files, and the program in the place of docker's builder: by the same words as docker's. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { compileBough } from "../../support/compiled.ts";
import { endOf } from "../../support/ended.ts";
import { writeFiles } from "../../support/files.ts";
import { type GithubCache, startGithubCache } from "../../support/github-cache.ts";
import { makeOrdinaryUser } from "../../support/ordinary-user.ts";
import { created, sourceOf, wordsOf } from "./jobs.ts";

let cache: GithubCache;
beforeEach(() => {
  cache = startGithubCache();
});
afterEach(() => cache[Symbol.asyncDispose]());

const dockerfile = "FROM base:1\nRUN echo one > /one\n";
const files = {
  "app/Dockerfile": dockerfile,
  "docker-bake.hcl": `target "default" {
  context    = "app"
  cache-from = ["type=gha,scope=bake"]
  cache-to   = [{ type = "gha", scope = "bake", mode = "max" }]
}
`,
  "compose.yaml": `services:
  app:
    build: {context: app, cache_from: ["type=gha"], cache_to: ["type=gha,mode=max"]}
`,
};

const bake = (file: string) => ["bake", "-f", file];

test.each<[string, string[], boolean]>([
  ["a bake file", bake("docker-bake.hcl"), false],
  ["a compose file", bake("compose.yaml"), false],
  ["buildx bake", bake("docker-bake.hcl"), true],
  ["buildx build", ["build", "--cache-from", "type=gha", "--cache-to", "type=gha,mode=max", "app"], true],
])(
  "%s shares layers between empty homes",
  async (_, words, isPlugin) => {
    const layout = await makeBusyboxLayout(temporaryDirectory());
    const environment = cache.environmentFor();
    const runs: string[][] = [];
    for (const _home of ["first", "second"]) {
      const directory = temporaryDirectory();
      writeFiles(directory, files);
      symlinkSync(compileBough(), join(directory, "docker-buildx"));
      const program = isPlugin ? [join(directory, "docker-buildx"), "buildx"] : [compileBough(), "--local"];
      const env = {
        PATH: process.env.PATH ?? "",
        HOME: directory,
        BOUGH_HOME: join(directory, "state"),
        ...environment,
      };
      const run = (command: readonly string[]) =>
        endOf(
          Bun.spawn([...command], { cwd: directory, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" }),
        );
      const imported = await run([compileBough(), "--local", "images", "import", layout, "--tag", "base:1"]);
      expect(imported.exitCode, imported.stderr).toBe(0);
      const built = await run([...program, ...words, "--progress=plain"]);
      expect(built.exitCode, built.stderr).toBe(0);
      expect(built.stderr).not.toContain("left out");
      runs.push(built.stderr.match(/RUN spawned|cached layer/g) ?? []);
    }
    expect(runs).toEqual([["RUN spawned"], ["cached layer"]]);
    expect(created(cache)).toBe(2);
  },
  180_000,
);

test("docker's builder leaves out a cache that its job has no access to, and bough refuses it", async () => {
  const directory = temporaryDirectory();
  writeFiles(directory, { Dockerfile: "FROM scratch\nCOPY x /\n", x: "x" });
  symlinkSync(compileBough(), join(directory, "docker-buildx"));
  const build = (program: readonly string[]) =>
    endOf(
      Bun.spawn([...program, "build", "--cache-from=type=gha", "."], {
        ...{ cwd: directory, stdin: "ignore", stdout: "pipe", stderr: "pipe" },
        env: {
          ...{ PATH: process.env.PATH ?? "", HOME: directory, BOUGH_HOME: join(directory, "state") },
          ACTIONS_RESULTS_URL: cache.url,
        },
      }),
    );
  const left = await build([join(directory, "docker-buildx"), "buildx"]);
  expect(left.exitCode, left.stderr).toBe(0);
  expect(left.stderr).toContain(
    "type=gha needs ACTIONS_RUNTIME_TOKEN, which actions of a GitHub job have: it is left out",
  );
  const refused = await build([compileBough(), "--local"]);
  expect(refused.exitCode).toBe(2);
  expect(refused.stderr).toContain("--cache-from: type=gha needs ACTIONS_RUNTIME_TOKEN");
  expect(refused.stderr).toContain("type=registry");
}, 60_000);

test("an ordinary user, whose engine is in a namespace, shares layers between empty homes", async () => {
  const runs: number[] = [];
  const environment = cache.environmentFor();
  for (const _home of ["first", "second"]) {
    const user = makeOrdinaryUser();
    try {
      const source = user.give(await sourceOf("RUN echo one > /one\n"), "app");
      const words = ["--local", "build", source, ...wordsOf({})];
      const built = await endOf(
        Bun.spawn([...user.prefix, user.giveBough(), ...words], {
          ...{ cwd: "/", stdin: "ignore", stdout: "pipe", stderr: "pipe" },
          env: {
            PATH: process.env.PATH ?? "",
            HOME: user.home,
            BOUGH_HOME: join(user.home, "state"),
            ...environment,
          },
        }),
      );
      expect(built.exitCode, built.stderr).toBe(0);
      runs.push(built.stderr.match(/RUN spawned/g)?.length ?? 0);
    } finally {
      user.remove();
    }
  }
  expect(runs).toEqual([1, 0]);
}, 120_000);
