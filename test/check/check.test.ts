import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { dockerRules, errorRules, ownRules } from "../../src/check/rules.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

const cases = join(import.meta.dir, "../cases/check");

describe("every rule has a golden case", () => {
  const goldens = readdirSync(cases).map((name) => readFileSync(join(cases, name, "expected.txt"), "utf8"));
  // A git repository cannot hold special files, so this rule has a test of its own below. The other one needs past builds: `test/cli/changing-variables.test.ts`.
  const elsewhere = ["SpecialFileLeftOut", "ChangingVariable"];
  test.each(
    Object.keys({ ...dockerRules, ...ownRules, ...errorRules }).filter((rule) => !elsewhere.includes(rule)),
  )("%s", (rule) => {
    const heading = new RegExp(`^(WARNING|ERROR): ${rule}( - https://docs\\.docker\\.com/\\S+)?$`, "m");
    expect(goldens.some((golden) => heading.test(golden))).toBe(true);
  });
});

test("a check sends no request and creates no state directory", async () => {
  const service = await startFakeService();
  const context = temporaryDirectory();
  const state = join(temporaryDirectory(), "state");
  writeFiles(context, {
    Dockerfile: "FROM --platform=$BUILDPLATFORM base:1\nADD https://127.0.0.1:9/x /x\nCOPY --chown=app a /\n",
    a: "x",
  });
  const ended = await runBough(["--url", service.url, "--token", "t", "build", "--check", "--tag", "app"], {
    workingDirectory: context,
    environment: { BOUGH_HOME: state },
  });
  await service.close();
  expect(ended).toMatchObject({ exitCode: 0, stderr: "" });
  expect(service.requests).toEqual([]);
  expect(existsSync(state)).toBe(false);
});

test("a Dockerfile is checked without a service, also on a system without the embedded engine", async () => {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: "FROM --platform=linux/amd64 base:1 AS linux\n" });
  const ended = await runBough(["build", "--check"], { workingDirectory: context, platform: "darwin" });
  expect(ended).toMatchObject({ exitCode: 0, stdout: "Check complete, no warnings found.\n" });
});

test("a platform that the embedded engine does not support is an error", async () => {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: "FROM --platform=windows/amd64 base:1 AS amd64\n" });
  const ended = await runBough(["--local", "build", "--check"], { workingDirectory: context });
  expect(ended.exitCode).toBe(2);
  expect(ended.stdout).toContain("FROM --platform=windows/amd64: the service runs only images for Linux");
});

test("--quiet prints nothing, and the exit code has the result", async () => {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: "FROM base:1\nCOPY missing /\n" });
  const ended = await runBough(["build", "--check", "-q"], { workingDirectory: context });
  expect(ended).toEqual({ exitCode: 2, stdout: "", stderr: "" });
});

test("a missing Dockerfile is a usage error, as for a build", async () => {
  const context = temporaryDirectory();
  const ended = await runBough(["build", "--check", "-f", "json"], { workingDirectory: context });
  expect(ended).toMatchObject({ exitCode: 2, stdout: "" });
  expect(JSON.parse(ended.stderr).error.message).toContain("cannot read the Dockerfile");
});

test("a pipe in a directory is left out with a warning, and copied with --docker", async () => {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: "FROM base:1\nCOPY directory /srv/\n", "directory/a": "x" });
  Bun.spawnSync(["mkfifo", join(context, "directory/pipe")]);
  const check = async (...options: string[]) => {
    const words = ["build", "--check", "--format", "json", ...options];
    const { files, warnings } = JSON.parse((await runBough(words, { workingDirectory: context })).stdout);
    return {
      files: files.map(({ type, source }: { type: string; source: string }) => `${type} ${source}`),
      warnings,
    };
  };
  expect(await check()).toEqual({
    files: ["file directory/a"],
    warnings: [{ rule: "SpecialFileLeftOut", message: expect.stringContaining("directory/pipe"), line: 2 }],
  });
  expect(await check("--docker")).toEqual({
    files: ["file directory/a", "special directory/pipe"],
    warnings: [],
  });
});
