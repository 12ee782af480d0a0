/** `bough history` after builds on the embedded engine. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { registerBuild } from "../../src/cli/sessions/running-builds.ts";
import { BoughError } from "../../src/errors.ts";
import type { BuildStatus } from "../../src/history/build-record.ts";
import { historyPath, openHistory } from "../../src/history/history-database.ts";
import { originOf, recordOf, start, stepOf } from "../history/builds.ts";
import { Agent } from "../support/agent.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

const layout = await makeBusyboxLayout(temporaryDirectory());
const home = temporaryDirectory();
await boughIn(home, "images", "import", layout, "--tag", "base:1");

function boughIn(
  BOUGH_HOME: string,
  ...words: string[]
): Promise<{ exitCode: number; stdout: string; stderr: string }> {
  return runBough(["--local", ...words], { workingDirectory: "/", environment: { BOUGH_HOME } });
}

const bough = (...words: string[]) => boughIn(home, ...words);
const json = async (...words: string[]) =>
  JSON.parse((await bough("-f", "json", "history", ...words)).stdout);

function contextOf(dockerfile: string, files: Record<string, string> = {}): string {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: dockerfile, ...files });
  return context;
}

test("a build is seen afterwards: its steps, why they were not cached, and what they printed", async () => {
  const context = contextOf("FROM base:1\nCOPY a /a\nRUN (echo one; echo two) >&2\nRUN true\n", { a: "1" });
  await bough("build", "--docker", context, "--tag", "seen:1");
  writeFiles(context, { a: "2" });
  await bough("build", "--docker", context, "--tag", "seen:1");
  const [last, first] = await json("ls", "--context", context);
  expect(first).toMatchObject({
    status: "succeeded",
    name: "seen:1",
    door: "build",
    layers: 3,
    cached: 0,
    error: null,
  });
  const shown = await json("show", last.id.slice(0, 8));
  expect(shown).toMatchObject({
    ...{ id: last.id, status: "succeeded", context, dockerfile: "Dockerfile", tags: ["seen:1"] },
    inputs: [{ kind: "image", name: "base:1" }],
  });
  expect(
    shown.steps.map((step: Record<string, unknown>) => [step.title, step.outcome, step.because]),
  ).toEqual([
    ["FROM base:1", "cached", null],
    ["COPY a /a", "made", expect.stringMatching(/^a \(\/a in the image\) has changed: sha256 \w+ -> \w+$/)],
    [
      "RUN (echo one; echo two) >&2",
      "made",
      expect.stringMatching(/^the parent layer has changed: COPY a \/a/),
    ],
    ["RUN true", "made", expect.stringMatching(/^the parent layer has changed: RUN \(echo/)],
  ]);
  const { stdout } = await bough("history", "show", last.id);
  expect(stdout).toContain("STATUS      succeeded in ");
  expect(stdout).toMatch(/^3 {5}.* made .* RUN \(echo one; echo two\) >&2 .* the parent layer has changed/m);
  expect((await bough("history", "logs", last.id)).stdout).toBe(
    "[3/4] RUN (echo one; echo two) >&2\none\ntwo\n",
  );
  expect((await bough("history", "logs", last.id, "3")).stdout).toBe("one\ntwo\n");
});

test("a build whose layers are all there is recorded, too; without a name it is the last one", async () => {
  const context = contextOf("FROM base:1\nRUN echo cached\n");
  await bough("build", "--docker", context);
  await bough("build", "--docker", context);
  const [last] = await json("ls", "-n", "1");
  expect(last).toMatchObject({ context, layers: 1, cached: 1 });
  expect((await json("show")).id).toBe(last.id);
  expect((await json("show", "^1")).cached).toEqual({ layers: 1, cached: 0 });
});

test("a failed build has its error, and the log of the failed step", async () => {
  const context = contextOf("FROM base:1\nRUN echo before; exit 3\nRUN true\n");
  expect((await bough("build", "--docker", context)).exitCode).toBe(1);
  const [failed] = await json("ls", "--status", "failed");
  expect(failed).toMatchObject({ context, status: "failed" });
  expect(failed.error).toContain("Dockerfile:2: the command failed with exit code 3");
  const shown = await json("show", failed.id);
  expect(shown.steps.map(({ outcome }: { outcome: string }) => outcome)).toEqual(["cached", "failed"]);
  expect(shown.error.hint).toContain("--failed-step");
  expect((await bough("history", "logs", failed.id)).stdout).toContain("before\n");
});

test("a Dockerfile that does not parse is a failed build, and a command line that is wrong is none", async () => {
  const context = contextOf("FROM base:1\nRUNN true\n");
  expect((await bough("build", context)).exitCode).toBe(2);
  expect(await json("ls", "--context", context)).toMatchObject([{ status: "failed", layers: 0 }]);
  const before = await json("ls");
  expect((await bough("build", context, "--jobs", "none")).exitCode).toBe(2);
  expect((await bough("build", join(context, "nowhere"))).exitCode).toBe(2);
  expect(await json("ls")).toEqual(before);
});

test("an interrupted build is recorded with what it has done", async () => {
  const context = contextOf("FROM base:1\nRUN echo begun; sleep 60\n");
  const stopping = new AbortController();
  const { exitCode } = await runBough(["--local", "build", "--docker", context, "--progress", "plain"], {
    workingDirectory: "/",
    environment: { BOUGH_HOME: home },
    signal: stopping.signal,
    onStderr: (text) =>
      text.includes("begun\n") && stopping.abort(new BoughError("interrupted", { kind: "interrupted" })),
  });
  expect(exitCode).toBe(130);
  const [last] = await json("ls", "-n", "1");
  expect(last).toMatchObject({ context, status: "interrupted" });
  expect((await json("show")).steps.at(-1)).toMatchObject({
    outcome: "stopped",
    output: { length: 6, kept: 6 },
  });
  expect((await bough("history", "logs")).stdout).toContain("begun\n");
});

test("of a build that was killed, what was known a moment before is there, and it no longer runs", async () => {
  const own = temporaryDirectory();
  using history = openHistory(own);
  history.save(
    recordOf("k1", [stepOf(1, "RUN make", { output: { length: 5, kept: 5 } })], { status: "running" }),
    "0123.gone",
    new Map([[1, "half\n"]]),
  );
  const list = await boughIn(own, "-f", "json", "history");
  expect(JSON.parse(list.stdout)).toMatchObject([
    { id: "k1", status: "interrupted", error: expect.stringContaining("killed") },
  ]);
  expect((await boughIn(own, "history", "show")).stdout).toContain("bough was killed");
  expect((await boughIn(own, "history", "logs")).stdout).toContain("half\n");
});

test("a build that was killed is one of the past: the next one is compared with it, and engine prune removes it", async () => {
  const own = temporaryDirectory();
  await boughIn(own, "images", "import", layout, "--tag", "base:1");
  {
    using history = openHistory(own);
    const save = (id: string, status: BuildStatus, at: number) =>
      history.save(recordOf(id, [stepOf(1, "RUN x")], { status, startedAt: at }), "0123.gone", new Map());
    save("k1", "running", start);
    save("k2", "succeeded", start + 1000);
  }
  const page = (await boughIn(own, "history", "report", "k2", "-o", "-")).stdout;
  expect(page).toContain("<code>k1</code> of 2026-03-01 10:00 UTC interrupted in");
  const prune = async (...words: string[]) =>
    JSON.parse((await boughIn(own, "-f", "json", "engine", "prune", ...words)).stdout).history.count;
  expect(await prune("--older-than", "30d")).toBe(2);
  expect(await prune("--all", "-y")).toBe(2);
  expect((await boughIn(own, "-q", "history")).stdout).toBe("");
});

test("a build that runs stays when others are pruned", async () => {
  const own = temporaryDirectory();
  await boughIn(own, "images", "import", layout, "--tag", "base:1");
  using building = registerBuild(own, "build:0123");
  {
    using history = openHistory(own);
    history.save(recordOf("r1", [], { status: "running" }), building.id, new Map());
  }
  await boughIn(own, "engine", "prune", "--all", "-y");
  expect((await boughIn(own, "-q", "history")).stdout).toBe("r1\n");
});

test("values of secrets are masked in the log, in arguments and in errors", async () => {
  const context = contextOf(
    "FROM base:1\nARG API_TOKEN\nARG PLAIN\nRUN --mount=type=secret,id=s cat /run/secrets/s; echo $API_TOKEN; echo plain $PLAIN; exit 1\n",
  );
  writeFiles(context, { secret: "first-line-of-it\nsecond-line-of-it\n" });
  const options = [
    "--secret",
    `id=s,src=${context}/secret`,
    "--build-arg",
    "API_TOKEN=hunter22",
    "--build-arg",
    "PLAIN=yes",
  ];
  const { stderr } = await bough("build", "--docker", context, ...options);
  expect(stderr).toContain("hunter22");
  const shown = await json("show");
  expect(shown.buildArgs).toEqual([
    { name: "API_TOKEN", value: null },
    { name: "PLAIN", value: "yes" },
  ]);
  const all = JSON.stringify(shown) + (await bough("history", "logs")).stdout;
  for (const secret of ["hunter22", "first-line-of-it", "second-line-of-it"])
    expect(all).not.toContain(secret);
  expect(all).toContain("plain yes");
});

test("of a secret with many lines, each is masked, and the rest of the log is there", async () => {
  const context = contextOf(
    "FROM base:1\nRUN --mount=type=secret,id=s cat /run/secrets/s; echo the rest; echo in $(head -n 1 /run/secrets/s) out; exit 1\n",
  );
  const lines = Array.from({ length: 600 }, (_, at) => `line-${at}+${"/=".repeat(20)}`);
  writeFiles(context, { secret: `${lines.join("\n")}\n` });
  await bough("build", "--docker", context, "--secret", `id=s,src=${context}/secret`);
  const { stdout } = await bough("history", "logs");
  expect(stdout).not.toContain("line-");
  expect(stdout).toContain("\nthe rest\nin *** out\n");
  expect((await json("show")).error.message).toContain("RUN --mount=type=secret");
});

describe("diff", () => {
  test("names the step that a sleep was put into, and says why it was not cached", async () => {
    const lines = ["FROM base:1", "RUN echo one", "RUN echo two", "RUN echo three"];
    const context = contextOf(lines.join("\n"));
    await bough("build", "--docker", context);
    writeFiles(context, { Dockerfile: lines.join("\n").replace("echo two", "sleep 0.4; echo two") });
    await bough("build", "--docker", context);
    const { steps } = await json("diff");
    const slowest = steps.toSorted(
      (one: { seconds: number }, other: { seconds: number }) => other.seconds - one.seconds,
    )[0];
    expect(slowest).toMatchObject({
      ...{ instruction: "RUN sleep 0.4; echo two", isEdited: true },
      because: "the instruction's text has changed; it was RUN echo two",
    });
    const { stdout } = await bough("history", "diff");
    expect(stdout).toMatch(/^3 .* edited +RUN sleep 0\.4; echo two/m);
  });

  test("has sizes without any option, also against a build that took all from the cache", async () => {
    const context = contextOf("FROM base:1\nCOPY a /a\nRUN cat /a /a > /b\n", { a: "x".repeat(50_000) });
    await bough("build", "--docker", context);
    await bough("build", "--docker", context);
    writeFiles(context, { a: "x".repeat(150_000) });
    await bough("build", "--docker", context);
    const { steps } = await json("diff");
    const sizes = steps.map(({ before, after, bytes }: Record<string, { addedBytes: number }>) => [
      ...[before?.addedBytes, after?.addedBytes],
      bytes,
    ]);
    expect(sizes).toEqual([
      [null, null, null],
      [50_000, 150_000, 100_000],
      [100_000, 300_000, 200_000],
    ]);
    expect((await bough("history", "diff")).stdout).toMatch(/^3 .* \+200 kB .* RUN cat \/a \/a > \/b/m);
    expect((await bough("history", "show", "^1")).stdout).toMatch(/^3 .* cached +100 kB +RUN cat/m);
  });

  test("without an earlier build of the same thing it says so", async () => {
    const context = contextOf("FROM base:1\nRUN echo alone\n");
    await bough("build", "--docker", context);
    const { exitCode, stderr } = await bough("history", "diff");
    expect({ exitCode, stderr }).toEqual({
      exitCode: 1,
      stderr: expect.stringMatching(/^\[ERROR\] the history has no earlier build of the same thing as \w+\n/),
    });
  });
});

describe("what can't be recorded fails no build", () => {
  const context = contextOf("FROM base:1\nRUN echo fine\n");
  const buildsWith = async (prepare: (own: string) => void) => {
    const own = temporaryDirectory();
    await boughIn(own, "images", "import", layout, "--tag", "base:1");
    prepare(own);
    const ended = await boughIn(own, "-L", "debug", "build", "--docker", context);
    expect(ended.exitCode).toBe(0);
    return ended.stderr;
  };

  test("a link in the place of the history", async () => {
    const stderr = await buildsWith((own) => symlinkSync("/etc/passwd", historyPath(own)));
    expect(stderr).toContain("the build is not recorded in the history");
  });

  test("a directory in its place", async () => {
    expect(await buildsWith((own) => mkdirSync(historyPath(own)))).toContain("not recorded");
  });

  test("garbage in its place, which is replaced", async () => {
    expect(await buildsWith((own) => writeFileSync(historyPath(own), "x".repeat(8192)))).not.toContain(
      "not recorded",
    );
  });

  test("but its readers say what is wrong", async () => {
    const own = temporaryDirectory();
    mkdirSync(historyPath(own));
    const { exitCode, stderr } = await boughIn(own, "history");
    expect(exitCode).toBe(1);
    expect(stderr).toContain("cannot open the history of builds");
  });
});

describe("a list", () => {
  const own = temporaryDirectory();
  {
    using history = openHistory(own);
    const hour = 3_600_000;
    const save = (id: string, name: string, given: object, origin: object = {}) =>
      history.save(
        recordOf(id, [stepOf(1, "RUN x")], { origin: originOf(name, origin), ...given }),
        "",
        new Map(),
      );
    save("aaa1", "app:dev", { startedAt: start });
    save("aab2", "api:dev", {
      startedAt: start + hour,
      status: "failed",
      error: { message: "no\nmore", hint: null },
    });
    save("abc3", "app:ci", { startedAt: start + 2 * hour, seconds: 75 }, { isCi: true });
    save("b4", "shop web", { startedAt: start + 3 * hour }, { door: "bake", context: "/src/shop" });
    save("b5", "mine", { startedAt: start + 4 * hour }, { door: "docker" });
  }
  const ids = async (...words: string[]) =>
    (await boughIn(own, "-q", "history", ...words)).stdout.trim().split("\n");

  test.each<[words: string[], ids: string[]]>([
    [[], ["b5", "b4", "abc3", "aab2", "aaa1"]],
    [
      ["ls", "-n", "2"],
      ["b5", "b4"],
    ],
    [["ls", "--status", "failed"], ["aab2"]],
    [["ls", "--by", "bake"], ["b4"]],
    [["ls", "--ci"], ["abc3"]],
    [
      ["ls", "--name", "APP"],
      ["abc3", "aaa1"],
    ],
    [["ls", "--context", "/src/shop"], ["b4"]],
    [
      ["ls", "--since", "2026-03-01T11:30:00Z", "--until", "2026-03-01T13:30:00Z"],
      ["b4", "abc3"],
    ],
    [["ls", "--name", "nothing"], [""]],
  ])("%j", async (words, expected) => {
    expect(await ids(...words)).toEqual(expected);
  });

  test("for people", async () => {
    const { stdout } = await boughIn(own, "--wide", "history");
    expect(stdout).toBe(
      `
BUILD  STARTED                   STATUS     TIME        CACHED  NAME      BY         ERROR
b5     2026-03-01T14:00:00.000Z  succeeded  1.0 s       0/1     mine      docker     -
b4     2026-03-01T13:00:00.000Z  succeeded  1.0 s       0/1     shop web  bake       -
abc3   2026-03-01T12:00:00.000Z  succeeded  1 min 15 s  0/1     app:ci    build, CI  -
aab2   2026-03-01T11:00:00.000Z  failed     1.0 s       0/1     api:dev   build      no
aaa1   2026-03-01T10:00:00.000Z  succeeded  1.0 s       0/1     app:dev   build      -
`.trimStart(),
    );
  });

  test.each([
    ["show aa", "aa is ambiguous: 2 builds begin with it"],
    ["show zzz", 'there is no build "zzz" in the history'],
    ["show ^9", "there is no build ^9: the history has 5"],
    ["logs b5 7", "the build b5 has no step 7"],
    ["ls --status lost", '--status takes running, succeeded, failed or interrupted, not "lost"'],
    ["rm", "give the IDs of builds, or --all"],
  ])("history %s: %s", async (words, message) => {
    expect((await boughIn(own, "history", ...words.split(" "))).stderr).toContain(message);
  });

  test("rm removes the builds that are named, or all", async () => {
    expect((await boughIn(own, "history", "rm", "aaa", "^1")).stdout).toBe("aaa1\nb4\n");
    expect(await ids()).toEqual(["b5", "abc3", "aab2"]);
    expect((await boughIn(own, "history", "rm", "--all")).stdout).toBe("removed 3 builds\n");
    expect((await boughIn(own, "history", "show")).stderr).toContain("the history has no builds yet");
  });
});

describe("a page about a build", () => {
  const context = contextOf("FROM base:1\nRUN echo hello; dd if=/dev/zero of=/opt-file bs=1M count=2\n");

  test("--report writes it, with the sizes of the image", async () => {
    const file = join(temporaryDirectory(), "build.html");
    expect((await bough("build", "--docker", context, "--tag", "page:1", "--report", file)).exitCode).toBe(0);
    const page = await Bun.file(file).text();
    expect(page).toContain("<h1>page:1</h1>");
    expect(page).toMatch(/<code>\/opt-file<\/code>.*2\.1 MB/);
    expect(page).toContain("hello");
  });

  test("--report has the sizes of layers that an earlier build has measured, also after a failure", async () => {
    const step = "RUN dd if=/dev/zero of=/sized bs=1M count=3";
    const own = contextOf(`FROM base:1\n${step}\n`);
    const file = join(temporaryDirectory(), "build.html");
    await bough("build", "--docker", own);
    writeFiles(own, { Dockerfile: `FROM base:1\n${step}\nRUN exit 4\n` });
    expect((await bough("build", "--docker", own, "--report", file)).exitCode).toBe(1);
    const page = await Bun.file(file).text();
    expect(page).toContain("adds 3.1 MB");
    expect((await bough("history", "report", "-o", "-")).stdout).toBe(page);
  });

  test("--report writes it after a failure, too, with the output of the failed step", async () => {
    const file = join(temporaryDirectory(), "build.html");
    writeFileSync(file, "of an earlier build");
    const failing = contextOf("FROM base:1\nRUN echo reason; exit 4\n");
    expect((await bough("build", "--docker", failing, "--report", file)).exitCode).toBe(1);
    const page = await Bun.file(file).text();
    expect(page).toContain("What went wrong");
    expect(page).toMatch(/<pre[^>]*>reason<\/pre>/);
  });

  test("history report writes it later, to a file or to standard output", async () => {
    await bough("build", "--docker", context, "--tag", "page:1");
    const [{ id }] = await json("ls", "-n", "1");
    const directory = temporaryDirectory();
    const options = { workingDirectory: directory, environment: { BOUGH_HOME: home } };
    expect((await runBough(["--local", "history", "report"], options)).stdout).toBe(`bough-${id}.html\n`);
    const written = await Bun.file(join(directory, `bough-${id}.html`)).text();
    expect(written).toContain("/opt-file");
    expect((await bough("history", "report", id, "-o", "-")).stdout).toBe(written);
  });

  test("where no file can be written, that is an error before the build", async () => {
    const { exitCode, stderr } = await bough("build", "--docker", context, "--report", "/nowhere/build.html");
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: expect.stringContaining("--report /nowhere/build.html"),
    });
  });

  test("--check builds nothing and has none", async () => {
    const { stderr } = await bough("build", "--check", context, "--report", "x.html");
    expect(stderr).toContain("--check and --report cannot be used together");
  });
});

test("engine df lists the history, and engine prune frees it", async () => {
  const own = temporaryDirectory();
  await boughIn(own, "images", "import", layout, "--tag", "base:1");
  const day = 86_400_000;
  {
    using history = openHistory(own);
    const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(200_000))).toString("latin1");
    for (const [at, age] of [40, 20, 1].entries())
      history.save(recordOf(`b${at}`, [], { startedAt: Date.now() - age * day }), "", new Map([[1, noise]]));
  }
  const df = async () => JSON.parse((await boughIn(own, "-f", "json", "engine", "df")).stdout).history;
  const ids = async () => (await boughIn(own, "-q", "history")).stdout.trim().split("\n");
  const before = await df();
  expect(before.count).toBe(3);
  expect((await boughIn(own, "engine", "df")).stdout).toMatch(/^builds +3 .*in `bough history`$/m);
  await boughIn(own, "engine", "prune", "-y");
  expect(await ids()).toEqual(["b2", "b1", "b0"]);
  expect((await boughIn(own, "engine", "prune", "--older-than", "30d")).stdout).toContain("1 past build");
  expect(await ids()).toHaveLength(3);
  const pruned = JSON.parse(
    (await boughIn(own, "-f", "json", "engine", "prune", "--older-than", "30d", "-y")).stdout,
  );
  expect(pruned.history.count).toBe(1);
  expect(pruned.history.bytes).toBeGreaterThan(100_000);
  expect(await ids()).toEqual(["b2", "b1"]);
  expect((await df()).bytes).toBeLessThan(before.bytes - 100_000);
  await boughIn(own, "engine", "prune", "--all", "-y");
  expect(await ids()).toEqual([""]);
});

describe("builds of other commands are recorded, too", () => {
  test("of bake, a build for each target", async () => {
    const directory = contextOf("FROM base:1 AS one\nRUN echo baked\nFROM one AS two\nRUN echo more\n");
    writeFiles(directory, {
      "docker-bake.json": JSON.stringify({
        group: { default: { targets: ["one", "two"] } },
        target: { one: { target: "one" }, two: { target: "two", tags: ["two:1"] } },
      }),
    });
    const options = { workingDirectory: directory, environment: { BOUGH_HOME: home } };
    expect((await runBough(["--local", "bake"], options)).exitCode).toBe(0);
    const builds = await json("ls", "--context", directory, "--by", "bake");
    const named = builds.map(({ name, status, bakeTarget, target }: Record<string, unknown>) => [
      ...[name, status, bakeTarget, target],
    ]);
    expect(named.sort()).toEqual([
      [`${basename(directory)} one`, "succeeded", "one", "one"],
      ["two:1", "succeeded", "two", "two"],
    ]);
  });

  test("of a coding agent", async () => {
    const directory = temporaryDirectory();
    writeFiles(directory, { "app/Dockerfile": "FROM base:1\nRUN echo asked\n" });
    const agent = await Agent.start(["--local", "mcp"], directory, { BOUGH_HOME: home });
    try {
      expect((await agent.call("build", { context: "app", docker: true })).isError).toBe(false);
    } finally {
      await agent.close();
    }
    expect((await json("ls", "-n", "1"))[0]).toMatchObject({ door: "mcp", context: join(directory, "app") });
  });

  test("of several builds at once", async () => {
    const contexts = [1, 2, 3].map((number) => contextOf(`FROM base:1\nRUN echo at-once-${number}\n`));
    const ended = await Promise.all(contexts.map((context) => bough("build", "--docker", context)));
    expect(ended.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
    const builds = await json("ls", "-n", "3");
    expect(builds.map(({ context }: { context: string }) => context).sort()).toEqual(contexts.toSorted());
  });
});
