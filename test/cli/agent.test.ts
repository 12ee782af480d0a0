/** The manual for coding agents is true: every command line in it works. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { manual } from "../../src/cli/about/agent-manual.ts";
import { version } from "../../src/version.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { type Ended, runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";
import { splitWords } from "../support/words.ts";

const lines = manual
  .split("\n")
  .filter((line) => line.startsWith("  bough "))
  .map((line) => /^ {2}bough (.*?)(?: {2,}(\S.*))?$/.exec(line)?.[1] ?? line);

const home = temporaryDirectory();
const workingDirectory = join(home, "project");
const environment: Record<string, string> = { BOUGH_HOME: join(home, "state"), HOME: home };
let service: FakeService;
let registry: Registry;
let build = "";
let layer = "";
let operation = "";
let entry = "";

beforeAll(async () => {
  service = await startFakeService({
    extensions: ["resource-limits", "shm-size", "ulimits"],
    run: ({ command, args = [] }) => {
      if (command === "fail") return { exitCode: 1 };
      if (command === "sleep") return { until: new Promise(() => {}) };
      if (command === "echo") return { stdout: `${args.join(" ")}\n` };
      return { stdout: "" };
    },
  });
  registry = await Registry.start();
  service.state.addImage("base:1");
  service.state.tree.set("/etc", { type: "directory" });
  service.state.tree.set("/etc/os-release", { type: "file", content: "NAME=test\n" });
  environment.CONTREE_URL = service.url;
  environment.CONTREE_TOKEN = "t0ken-t0ken";
  mkdirSync(workingDirectory);
  mkdirSync(join(environment.BOUGH_HOME ?? "", "engine"), { recursive: true });
  writeFiles(workingDirectory, {
    Dockerfile: "FROM base:1\nARG VERSION\nRUN make $VERSION\n",
    "src/main.c": "",
    "app.sh": "",
  });
});
afterAll(() => Promise.all([service.close(), registry.stop()]));

async function failBuild(): Promise<void> {
  const file = join(workingDirectory, "Dockerfile");
  const text = readFileSync(file, "utf8");
  writeFileSync(file, `${text}RUN fail\n`);
  const { exitCode } = await runBough(["build", "."], { workingDirectory, environment });
  expect(exitCode).toBe(1);
  writeFileSync(file, text);
}

/** Runs a command line of the manual, with ids of this test in place of the manual's examples. */
async function run(line: string): Promise<Ended> {
  const actual = line
    .replace("build:0123456789abcdef", build)
    .replace("layer:0123456789ab", layer)
    .replace(/\bOP\b/, operation)
    .replace("registry.example", registry.host)
    .replace("--from ID", `--from ${entry}`);
  if (line.includes("--failed-step")) await failBuild();
  const ended = await runBough(splitWords(actual), { workingDirectory, environment });
  build ||= /build:[0-9a-f]{16}/.exec(ended.stdout)?.[0] ?? "";
  layer ||= /layer:[0-9a-f]{12}/.exec(ended.stdout)?.[0] ?? "";
  entry ||= /^[○●] (\d+) .* use /m.exec(ended.stdout)?.[1] ?? "";
  if (line.includes(" run -d ")) operation = ended.stdout.trim();
  return ended;
}

test("the manual is short, names this version, and is printed by `bough agent`", async () => {
  expect(manual.split("\n").length).toBeLessThan(150);
  expect(manual).toStartWith(`# bough ${version} for coding agents\n`);
  expect(Math.max(...manual.split("\n").map((line) => line.length))).toBeLessThanOrEqual(120);
  expect((await runBough(["agent"], { workingDirectory: "/" })).stdout).toBe(manual);
});

describe("every command line in the manual works:", () => {
  test.each(lines)("bough %s", async (line) => {
    const { exitCode, stderr } = await run(line);
    expect({ exitCode, errors: stderr.split("\n").filter((text) => text.startsWith("[ERROR]")) }).toEqual({
      exitCode: 0,
      errors: [],
    });
  });
});

test("the manual uses all commands that agents need", () => {
  const named = new Set(lines.map((line) => line.replace(/^(-S \S+|--local) /, "").split(" ")[0]));
  expect([...named].sort()).toEqual(
    "auth build cat cp engine history images inspect kill logs ls ps push run session show tag untag use".split(
      " ",
    ),
  );
});

test("results, errors and exit codes are as the manual says", async () => {
  const json = async (line: string) => JSON.parse((await run(line)).stdout);
  expect(Object.keys(await json("build -f json . --tag app:dev"))).toEqual([
    "image",
    "tag",
    "tags",
    "session",
    "digest",
    "exported",
  ]);
  await run("-S k use app:dev");
  expect(Object.keys(await json("-S k run -D -f json -- echo hi"))).toEqual(
    expect.arrayContaining(["operation", "exitCode", "image", "stdout", "stderr"]),
  );
  const failed = await run("-f json show nothing");
  expect(Object.keys(JSON.parse(failed.stderr).error)).toEqual(["code", "message", "hint"]);
  expect([failed.exitCode, (await run("run --nonsense ls")).exitCode]).toEqual([1, 2]);
});
