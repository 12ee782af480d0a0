/** Dockerfiles of tens of thousands of lines: the cost is linear in their length, and Ctrl-C works at any time. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { writeFiles } from "../support/files.ts";
import { runs } from "../support/random.ts";

let context: string;
let service: FakeService;
beforeEach(async () => {
  context = temporaryDirectory();
  writeFiles(context, { a: "a" });
  service = await startFakeService();
  service.state.addImage("base:1");
});
afterEach(() => service.close());

type Line = (index: number) => string;
const lines: Record<string, Line> = {
  ENV: (index) => `ENV A${index}=v${index}`,
  "ENV of one name": (index) => `ENV A=v${index}`,
  "ENV that uses another": (index) => `ENV A${index}=$A${index % 100}`,
  "ENV that uses an undeclared variable": (index) => `ENV A${index}=$B${index}`,
  ARG: (index) => `ARG A${index}=v${index}`,
  COPY: (index) => `COPY a /x/f${index}`,
  "COPY to the root": (index) => `COPY a /f${index}`,
  "COPY into directories": (index) => `COPY a /x/d${index}/`,
  "COPY --chown": (index) => `COPY --chown=5:5 a /x/f${index}`,
  "COPY of here-documents": (index) => `COPY <<E /x/f${index}\nhi\nE`,
  LABEL: (index) => `LABEL l${index}=v`,
  WORKDIR: (index) => `WORKDIR /w${index}`,
  USER: (index) => `USER u${index}`,
  "USER and WORKDIR": (index) => (index % 2 === 0 ? `USER ${index}` : `WORKDIR /d${index}`),
  FROM: (index) => `FROM base:1 AS s${index}`,
  "FROM the stage before, with an ENV": (index) =>
    index % 2 === 0 ? `FROM ${index === 0 ? "base:1" : `s${index - 2}`} AS s${index}` : `ENV A${index}=x`,
  "FROM one stage again and again": (index) =>
    index < 500 ? `ENV A${index}=x` : index === 500 ? "FROM base:1 AS s" : `FROM s\nENV B${index}=x`,
  mixed: (index) =>
    [
      `ENV A${index}=$A${index - 6}`,
      `ARG B${index}`,
      `COPY a /x/f${index}`,
      `LABEL l${index}=v`,
      `WORKDIR /d${index}`,
      `USER ${index}`,
    ][index % 6] ?? "",
};

function writeDockerfile(line: Line, count: number): void {
  const text = Array.from({ length: count }, (_, index) => line(index)).join("\n");
  writeFileSync(join(context, "Dockerfile"), `FROM base:1\n${text}\nRUN true\n`);
}

/** Returns seconds of processor time, which do not depend on other load of the machine. */
async function cost(line: Line, count: number, words: readonly string[]): Promise<number> {
  writeDockerfile(line, count);
  const before = process.cpuUsage();
  const { exitCode, stderr } = await runBough(["--url", service.url, "-L", "error", "build", ...words], {
    workingDirectory: context,
    environment: { BOUGH_HOME: temporaryDirectory() },
  });
  const { user, system } = process.cpuUsage(before);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  return (user + system) / 1_000_000;
}

describe.each([
  ["a check", ["--check"]],
  ["a build", []],
])("%s: four times the lines cost about four times the time", (_, words) => {
  test.each(Object.entries(lines))(
    "%s",
    async (_name, line) => {
      const few = await cost(line, runs(500), words);
      const many = await cost(line, runs(2000), words);
      // Quadratic cost would be 16 times as much.
      expect(many).toBeLessThan(8 * few + 0.2);
    },
    180_000,
  );
});

test.each<[number, string, readonly string[]]>([
  [20_000, "check", ["--check"]],
  [10_000, "build", []],
])(
  "%d mixed lines: a %s takes less than 15 seconds of processor time",
  async (count, _, words) => {
    expect(await cost(lines.mixed ?? String, count, words)).toBeLessThan(15);
  },
  120_000,
);

test("3000 COPY instructions need at most 40 requests for the image's files", async () => {
  await cost((index) => `COPY a /x/f${index}`, 3000, []);
  const looks = service.requests.filter(({ path }) => path.startsWith("/v1/inspect/"));
  expect(looks.length).toBeWithin(1, 40);
});

test("variables that grow too large are refused with the line, before anything runs", async () => {
  const doubling =
    "ENV A=$A$A\n".repeat(16) + Array.from({ length: 100 }, (_, at) => `ENV B${at}=$A\n`).join("");
  writeFileSync(join(context, "Dockerfile"), `FROM base:1\nENV A=xxxxxxxx\n${doubling}RUN true\n`);
  const { exitCode, stderr } = await runBough(["--url", service.url, "build", "."], {
    workingDirectory: context,
    environment: { BOUGH_HOME: temporaryDirectory() },
  });
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(/Dockerfile:119: ENV and ARG before this line have \d+ characters/);
  expect(service.requestsTo("POST /v1/instances")).toHaveLength(0);
});

test.each<[string, string]>([
  ["a WORKDIR that grows with every line", "WORKDIR aaaaaaaaaa\n".repeat(500)],
  ["a destination of COPY", `COPY a /${"a/".repeat(2100)}\n`],
])("refuses a path in the image that is longer than Linux takes: %s", async (_, text) => {
  writeFileSync(join(context, "Dockerfile"), `FROM base:1\n${text}RUN true\n`);
  for (const words of [[], ["--check"]]) {
    const { exitCode, stdout, stderr } = await runBough(["--url", service.url, "build", ...words], {
      workingDirectory: context,
      environment: { BOUGH_HOME: temporaryDirectory() },
    });
    expect(exitCode).toBe(2);
    expect(stdout + stderr).toContain("bytes long, but Linux allows at most 4095");
  }
});

describe("Ctrl-C ends a build in the middle of 40,000 lines:", () => {
  test.each(["ENV", "ARG", "LABEL", "COPY", "USER"])(
    "%s",
    async (name) => {
      writeDockerfile((index) => (lines[name] ?? String)(index).replace("v", ""), 40_000);
      const child = Bun.spawn([compileBough(), "--url", service.url, "-L", "debug", "build", "."], {
        cwd: context,
        env: { PATH: process.env.PATH ?? "", BOUGH_HOME: temporaryDirectory() },
        stdout: "ignore",
        stderr: "pipe",
      });
      let log = "";
      let isInterrupted = false;
      for await (const chunk of child.stderr) {
        log += new TextDecoder().decode(chunk);
        if (isInterrupted || !log.includes("step 100/")) continue;
        isInterrupted = true;
        child.kill("SIGINT");
      }
      expect(await child.exited).toBe(130);
      const steps = log.match(/step \d+\//g) ?? [];
      expect(steps.length).toBeLessThan(36_000);
    },
    180_000,
  );
});

test("40,000 ignore rules and a thousand files take less than 15 seconds of processor time", async () => {
  writeFiles(
    context,
    Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`d${index % 10}/f${index}`, ""])),
  );
  const rules = Array.from({ length: 40_000 }, (_, index) =>
    index % 2 === 0 ? `**/f${index / 2}` : `*.x${index}`,
  );
  writeFileSync(join(context, ".dockerignore"), rules.join("\n"));
  expect(await cost(() => "COPY . /x/", 1, ["--check"])).toBeLessThan(15);
}, 180_000);
