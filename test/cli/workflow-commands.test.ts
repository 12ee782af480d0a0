/** What a build and a check write for GitHub Actions: annotations, and lines that keep commands of a RUN's output from counting. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { renderAnnotation } from "../../src/cli/builds/annotate.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

test("values are escaped as GitHub's toolkit does", () => {
  const place = { file: "a,b:c%/Dockerfile", line: 3, endLine: 4 };
  expect(
    renderAnnotation({ level: "error", title: "RUN a: b, 100%", message: "50%: one,\ntwo\r", place }),
  ).toBe(
    "::error file=a%2Cb%3Ac%25/Dockerfile,line=3,endLine=4,title=RUN a%3A b%2C 100%25::50%25: one,%0Atwo\\r\n",
  );
});

/** What a hostile package would print: commands of both forms, on both streams, also without a line break at the end. */
const hostile = ["::set-output name=digest::evil", "  ::add-mask::evil", "##[add-path]/evil", "::resume::"];
let service: FakeService;
beforeAll(async () => {
  service = await startFakeService({
    run: (request) => ({
      exitCode: JSON.stringify(request).includes("broken") ? 3 : 0,
      stdout: hostile.join("\n"),
      stderr: `${hostile.join("\n")}\n`,
    }),
  });
});
afterAll(() => service.close());

const dockerfile = (last: string) =>
  `FROM base:1 AS Build\nRUN echo first\nMAINTAINER me ##[add-path]/evil\nRUN ${last} \\\n  100%\n`;

/** Writes a project with one image, and one that `bough bake` builds. Returns its directory. */
function makeRepository(last: string): string {
  const repository = temporaryDirectory();
  mkdirSync(join(repository, ".git"));
  const bake = { target: { default: { context: "app" } } };
  writeFiles(repository, { "app/Dockerfile": dockerfile(last), "docker-bake.json": JSON.stringify(bake) });
  return repository;
}

/** Returns the lines that GitHub would take for commands: what stands outside of a pause. */
async function build(
  last: string,
  options: string[] = [],
  environment: Record<string, string> = { GITHUB_ACTIONS: "true" },
  command: readonly string[] = ["build", "--docker", "app"],
) {
  const words = ["--url", service.url, "--token", "t", ...command, ...options];
  const ended = await runBough(words, { workingDirectory: makeRepository(last), environment });
  let token: string | undefined;
  const commands: string[] = [];
  for (const line of ended.stderr.split("\n")) {
    const [, begun] = /^::stop-commands::([0-9a-f-]{36})$/.exec(line) ?? [];
    if (token !== undefined) token = line === `::${token}::` ? undefined : token;
    else if (begun !== undefined) token = begun;
    else if (/^\s*::|##\[/.test(line)) commands.push(line);
  }
  return { ...ended, commands, isPaused: token !== undefined };
}

describe("a build in GitHub Actions", () => {
  test("marks the lines of a failed command and of warnings, and lets no output be a command", async () => {
    const { exitCode, stderr, commands, isPaused } = await build("broken");
    expect({ exitCode, isPaused }).toEqual({ exitCode: 1, isPaused: false });
    for (const line of hostile) expect(stderr).toContain(line);
    expect(commands).toEqual([
      expect.stringMatching(
        /^::error file=app\/Dockerfile,line=4,endLine=5,title=RUN broken\s+100%25::the command failed with exit code 3/,
      ),
    ]);
    expect(stderr).toMatch(/\[ERROR\] app\/Dockerfile:4: /);
  });

  test("that succeeds marks what it warns of", async () => {
    const { exitCode, commands, isPaused, stdout } = await build("works", [
      "--check=warn",
      "--format",
      "json",
    ]);
    expect({ exitCode, isPaused, session: JSON.parse(stdout).session }).toMatchObject({
      exitCode: 0,
      isPaused: false,
    });
    expect(commands).toEqual([
      expect.stringContaining("::warning file=app/Dockerfile,line=1,endLine=1,title=StageNameCasing::"),
      expect.stringContaining("::warning file=app/Dockerfile,line=3,endLine=3,title=MaintainerDeprecated::"),
    ]);
  });

  test.each<[string, string[], number, string[]]>([
    [
      "--check=error fails before anything is run",
      ["--check=error"],
      2,
      ["StageNameCasing", "MaintainerDeprecated"],
    ],
    ["an invalid value is one error without a line", ["--secret", "id=x,src=nowhere"], 2, ["nowhere"]],
  ])("%s", async (_, options, exitCode, named) => {
    const ended = await build("works", options);
    expect(ended).toMatchObject({ exitCode, isPaused: false });
    expect(ended.stderr).not.toContain("spawned");
    expect(ended.commands).toEqual(
      named.map((name) => expect.stringMatching(new RegExp(`^::error .*${name}`))),
    );
  });

  test("of several targets marks no line, and lets no output be a command either", async () => {
    const ended = await build("broken", [], { GITHUB_ACTIONS: "true" }, ["bake"]);
    expect(ended).toMatchObject({ exitCode: 1, isPaused: false });
    for (const line of hostile) expect(ended.stderr).toContain(line.trim());
    expect(ended.commands).toEqual([
      expect.stringMatching(/^::error title=RUN broken.*::target default .*app\/Dockerfile:4: /),
    ]);
  });

  test.each<[string, string[], Record<string, string>]>([
    ["elsewhere", [], {}],
    ["where the variable is not true", [], { GITHUB_ACTIONS: "" }],
    ["among JSON events", ["--progress", "json"], { GITHUB_ACTIONS: "true" }],
  ])("there are no commands of bough's %s", async (_, options, environment) => {
    const { exitCode, stderr, commands } = await build("broken", options, environment);
    expect(exitCode).toBe(1);
    if (environment.GITHUB_ACTIONS === "true") expect(commands).toEqual([]);
    expect(stderr).not.toMatch(/::stop-commands|^::error|^::warning/m);
    if (options.length > 0)
      expect(
        stderr
          .trim()
          .split("\n")
          .map((line) => typeof JSON.parse(line)),
      ).not.toContain("string");
  });
});

describe("--check in GitHub Actions", () => {
  test("prints the report, and marks lines on standard error", async () => {
    const { exitCode, stdout, commands, stderr } = await build("works", ["--check"]);
    expect(exitCode).toBe(0);
    expect(stdout).toContain("Check complete, 2 warnings have been found!");
    expect(stdout).toContain("MAINTAINER me ##\\x5badd-path]/evil");
    expect(stdout).not.toMatch(/^\s*::|##\[/m);
    expect(commands.map((line) => line.replace(/::[^:]*$/, ""))).toEqual([
      "::warning file=app/Dockerfile,line=1,endLine=1,title=StageNameCasing",
      "::warning file=app/Dockerfile,line=3,endLine=3,title=MaintainerDeprecated",
    ]);
    expect(stderr).toBe(`${commands.join("\n")}\n`);
  });

  test.each(["--format=json", "-q"])("marks none with %s", async (option) => {
    const { exitCode, stdout, stderr } = await build("works", ["--check", option]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(stdout).not.toMatch(/^\s*::|##\[/m);
  });
});
