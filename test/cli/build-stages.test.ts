/** `bough build --docker` on the embedded engine: which stages run, when, and what is cached. */
import { beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../src/errors.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";

const environment: Record<string, string> = { BOUGH_HOME: "" };
beforeAll(async () => {
  environment.BOUGH_HOME = temporaryDirectory();
  const layout = await makeBusyboxLayout(temporaryDirectory());
  const imported = await runBough(["--local", "images", "import", layout, "--tag", "base:1"], {
    workingDirectory: "/",
    environment,
  });
  expect(imported.exitCode).toBe(0);
});

function makeContext(dockerfile: string, files: Record<string, FileSpec> = {}): string {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: dockerfile, ...files });
  return context;
}

const build = (context: string, ...options: string[]) =>
  runBough(["--local", "build", ".", "--progress", "plain", ...options], {
    workingDirectory: context,
    environment,
  });

/** What commands printed, without labels. */
function printed(log: string): string[] {
  return [...log.matchAll(/^\[\S+ \d+\/\d+\] (?!FROM)(?!.*(?:spawned|cached) )(.*)$/gm)].map(
    ([, text = ""]) => text,
  );
}

const counts = (log: string) => /(\d+) of (\d+) layers? cached/.exec(log)?.slice(1).join(" of ");

const two = `FROM base:1 AS build
RUN mkdir /out && echo built > /out/a && date +%N > /tmp/when
FROM base:1
WORKDIR /app
COPY --from=build /out .
RUN cat a
`;

test("a stage copies from another one; a second build runs nothing", async () => {
  const context = makeContext(two);
  const first = await build(context, "--docker");
  expect(first).toMatchObject({ exitCode: 0 });
  expect(printed(first.stderr)).toEqual(["built"]);
  const second = await build(context, "--docker");
  expect(second.stdout).toBe(first.stdout);
  expect(counts(second.stderr)).toBe("4 of 4");
});

test("a stage that is built again with the same result keeps the layers that copy from it cached", async () => {
  const context = makeContext(two);
  const first = await build(context, "--docker");
  writeFileSync(join(context, "Dockerfile"), two.replace("echo built", "sleep 0; echo built"));
  const second = await build(context, "--docker");
  expect(second.stdout).toBe(first.stdout);
  expect(counts(second.stderr)).toBe("3 of 4");
  // From now on, this version is cached, too.
  expect(counts((await build(context, "--docker")).stderr)).toBe("4 of 4");
  writeFileSync(join(context, "Dockerfile"), two.replace("echo built", "echo otherwise"));
  const third = await build(context, "--docker");
  expect(printed(third.stderr)).toEqual(["otherwise"]);
});

test("a new ENV before a COPY --from keeps the copy cached", async () => {
  const context = makeContext(two);
  await build(context, "--docker");
  writeFileSync(join(context, "Dockerfile"), two.replace("COPY", "ENV A=1\nCOPY"));
  expect(counts((await build(context, "--docker")).stderr)).toBe("3 of 4");
});

const several = `FROM base:1 AS one
RUN echo one
FROM base:1 AS two
RUN echo two
FROM no.such.registry.invalid/image AS unneeded
RUN false
FROM one
RUN echo last
`;

describe("only what the target needs is built", () => {
  test.each<[string, string[], string[]]>([
    ["the last stage", ["--docker"], ["one", "last"]],
    ["a stage by name, in any case", ["--target", "TWO"], ["two"]],
    ["a stage by number", ["--target", "0"], ["one"]],
  ])("%s", async (_, options, expected) => {
    const { exitCode, stderr } = await build(makeContext(several), ...options);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    // The output of a single stage has no labels.
    const outputs = stderr.matchAll(/^(?:\[\S+ \d+\/\d+\] )?(one|two|last)$/gm);
    expect([...outputs].map(([, text]) => text)).toEqual(expected);
  });
});

describe("refused before anything runs", () => {
  test.each<[string, string, string[], string]>([
    [
      "an unknown target",
      several,
      ["--target", "tow"],
      "--target tow: there is no such stage\nDid you mean two?",
    ],
    ["a target that resembles no name", "FROM base:1", ["--target", "x"], "No stage has a name"],
    [
      "an invalid index in a stage that nothing needs",
      "FROM base:1 AS a\nCOPY --from=5 /x /x\nFROM base:1\nRUN echo ran",
      ["--docker"],
      "Dockerfile:2: --from=5: there are 2 stages, counted from 0\n  2 | COPY --from=5 /x /x\n    |             ^\n",
    ],
    ["--target with --no-docker", several, ["--target", "one", "--no-docker"], "cannot be used together"],
    ["BOUGH_DOCKER", several, [], "BOUGH_DOCKER must be 1 or 0"],
  ])("%s", async (name, dockerfile, options, message) => {
    const given = name === "BOUGH_DOCKER" ? { ...environment, BOUGH_DOCKER: "yes" } : environment;
    const { exitCode, stderr } = await runBough(["--local", "build", ".", ...options], {
      workingDirectory: makeContext(dockerfile),
      environment: given,
    });
    expect(exitCode).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("spawned");
  });
});

test("BOUGH_DOCKER=1 means --docker, and --no-docker overrides it", async () => {
  const context = makeContext("FROM base:1\nRUN false\nFROM base:1\nRUN echo two");
  const given = { workingDirectory: context, environment: { ...environment, BOUGH_DOCKER: "1" } };
  expect((await runBough(["--local", "build", "."], given)).exitCode).toBe(0);
  expect((await runBough(["--local", "build", ".", "--no-docker"], given)).exitCode).toBe(1);
});

test("independent stages run concurrently, and Ctrl-C ends all of them", async () => {
  const stage = (name: string) => `FROM base:1 AS ${name}\nRUN sleep 600\n`;
  const dockerfile = `${stage("a")}${stage("b").replace("600", "601")}FROM base:1\nCOPY --from=a / /a\nCOPY --from=b / /b\n`;
  const interruption = new AbortController();
  let spawned = 0;
  const { exitCode, stderr } = await runBough(
    ["--local", "build", ".", "--docker", "--jobs", "2", "--progress", "plain"],
    {
      workingDirectory: makeContext(dockerfile),
      environment,
      signal: interruption.signal,
      onStderr(text) {
        spawned += text.match(/RUN spawned/g)?.length ?? 0;
        // Neither command ends, so this happens only if they run concurrently.
        if (spawned === 2) interruption.abort(new BoughError("interrupted", { kind: "interrupted" }));
      },
    },
  );
  expect(exitCode).toBe(130);
  expect(stderr.match(/operation \S+ is cancelled/g)).toHaveLength(2);
});

test("the failure of one stage ends the others, and the error is that of the failed stage", async () => {
  const dockerfile =
    "FROM base:1 AS slow\nRUN sleep 600\nFROM base:1 AS bad\nRUN sleep 1; exit 3\nFROM base:1\nCOPY --from=slow / /s\nCOPY --from=bad / /b\n";
  const { exitCode, stderr } = await build(makeContext(dockerfile), "--docker", "--jobs", "2");
  expect(exitCode).toBe(1);
  expect(stderr).toContain("Dockerfile:4: the command failed with exit code 3");
  expect(stderr).toContain("[slow 2/2] another stage has failed: cancelling operation");
  expect(stderr.match(/.*failed after.*/g)).toEqual([
    expect.stringMatching(/^\[WARN\] \[bad 2\/2\] failed after [1-9][\d.]* s: RUN sleep 1; exit 3$/),
  ]);
});

test("two equal stages run once, and their image is imported once", async () => {
  const layout = await makeBusyboxLayout(join(temporaryDirectory(), "layout"));
  const context = makeContext(
    "FROM oci:./layout:latest AS a\nRUN sleep 1; echo once\nFROM oci:./layout:latest AS b\nRUN sleep 1; echo once\nFROM base:1\nCOPY --from=a /etc/passwd /a\nCOPY --from=b /etc/passwd /b\n",
  );
  Bun.spawnSync(["cp", "-r", layout.split(":")[1] ?? "", join(context, "layout")]);
  const { exitCode, stderr } = await build(context, "--docker", "--allow-local-from", "--jobs", "4");
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  expect(stderr.match(/importing/g)).toHaveLength(1);
  expect(stderr.match(/RUN spawned/g)).toHaveLength(1);
});

test("an image without a shell takes files, links and directories, and a WORKDIR", async () => {
  const context = makeContext(
    `FROM base:1 AS bare
RUN rm /bin/sh /bin/mkdir
FROM bare AS filled
WORKDIR /app/x
COPY --chown=3:4 d d
FROM base:1
COPY --from=filled / /n/
RUN cd /n/app && find . -exec stat -c '%u:%g %n' {} + | sort -k 2
`,
    { "d/a": "a", "d/link": { link: "a" }, "d/empty": "directory/" },
  );
  const { exitCode, stderr } = await build(context, "--docker");
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  expect(printed(stderr).filter((line) => /^\d+:\d+ /.test(line))).toEqual([
    ...["0:0 .", "0:0 ./x", "3:4 ./x/d", "3:4 ./x/d/a", "3:4 ./x/d/empty", "3:4 ./x/d/link"],
  ]);
});
