/** `--progress`: what a build shows to people and other programs. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { truncateSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../src/errors.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import type { RunOutcome } from "../fake-service/state.ts";
import { type BoughOptions, runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

let service: FakeService;
let context: string;
let outcome: RunOutcome;
let home: string;
beforeEach(async () => {
  outcome = { stdout: "fine\n" };
  service = await startFakeService({ run: () => outcome });
  service.state.addImage("base:1");
  context = temporaryDirectory();
  home = temporaryDirectory();
  writeFiles(context, { Dockerfile: "FROM base:1\nENV A=1\nCOPY a /\nRUN make\nCOPY a /b\n", a: "abc" });
});
afterEach(() => service.close());

function build(...words: string[]) {
  return buildWith({}, ...words);
}

function buildWith(options: Partial<BoughOptions>, ...words: string[]) {
  const environment = { CONTREE_URL: service.url, CONTREE_TOKEN: "t0ken-t0ken", BOUGH_HOME: home };
  return runBough(["build", ...words], { workingDirectory: context, environment, ...options });
}

describe("--progress json", () => {
  const eventsOf = (text: string) =>
    text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  test("prints one event a line with its time and type; standard output has the result only", async () => {
    const { stdout, stderr, exitCode } = await build("--progress", "json", "-f", "json");
    const events = eventsOf(stderr);
    for (const { time } of events) expect(time).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    const types = events.map(({ type }) => type).filter((type) => type !== "upload-progress");
    const repeated = ["uploading", "uploaded", "spawned", "output", "ran", "step-end"];
    expect(types).toEqual([
      ...["log", "step", "resolved", "step-end", "step", "step-end", "step", "hashing", "staged", "step-end"],
      ...["step", ...repeated, "step", "hashing", "staged", "step-end"],
      ...["spawned", "output", "ran", "finished"],
    ]);
    expect(events.find(({ type }) => type === "log")).toMatchObject({
      level: "info",
      message: `service: ${service.url} (CONTREE_URL)`,
    });
    expect(events.filter(({ type }) => type === "step")[3]).toMatchObject({
      ...{ step: 4, steps: 5, line: 4, name: "RUN", instruction: "RUN make" },
    });
    expect(events.find(({ type }) => type === "output")).toMatchObject({ stream: "stdout", text: "fine\n" });
    const stage = { index: 0, name: null };
    for (const event of events)
      expect(event.stage).toEqual(["log", "finished"].includes(String(event.type)) ? undefined : stage);
    const stepsOf = (wanted: string) => events.filter(({ type }) => type === wanted).map(({ step }) => step);
    expect([stepsOf("resolved"), stepsOf("staged"), stepsOf("ran")]).toEqual([[1], [3, 5], [4, 5]]);
    expect(events.at(-1)).toMatchObject({
      ...{ type: "finished", image: JSON.parse(stdout).image, tag: null, steps: 5 },
      uploaded: { files: 1, bytes: 3 },
    });
    expect(exitCode).toBe(0);
  });

  test("prints a failure as the last event; the exit code is the same", async () => {
    outcome = { exitCode: 3, stderr: "broken\n" };
    const { stderr, exitCode } = await build("--progress", "json");
    expect(eventsOf(stderr).at(-1)).toMatchObject({
      ...{ type: "error", code: "failed" },
      message: expect.stringContaining("exit code 3"),
    });
    expect(exitCode).toBe(1);
  });

  test("prints an event of the failed step before the error, also if it has no command", async () => {
    writeFiles(context, { Dockerfile: "FROM base:1\nCOPY missing /\n" });
    const { stderr } = await build("--progress", "json");
    expect(eventsOf(stderr).slice(-2)).toMatchObject([
      { type: "step-failed", step: 2, stage: { index: 0 }, title: "COPY missing /" },
      { type: "error", message: expect.stringContaining("missing") },
    ]);
  });

  test("prints a usage error as an event", async () => {
    const { stderr, exitCode } = await build("--progress", "json", "--dockerfile", "missing");
    expect(eventsOf(stderr)).toMatchObject([{ type: "error", code: "usage" }]);
    expect(exitCode).toBe(2);
  });
});

test.each([
  [
    "fancy",
    '[ERROR] --progress takes auto, tty, compact, plain, json, rawjson, quiet or none, not "fancy"\n',
  ],
  ["tty", "[ERROR] --progress tty needs a terminal on standard error\n"],
  ["compact", "[ERROR] --progress compact needs a terminal on standard error\n"],
])("--progress %s is refused if standard error is not a terminal", async (mode, message) => {
  const { exitCode, stderr } = await build("--progress", mode);
  expect(stderr).toStartWith(message);
  expect(exitCode).toBe(2);
});

describe("the output of a RUN", () => {
  test.each([[["-q"]], [["-L", "error"]]])("is shown even with %p if the RUN fails", async (words) => {
    outcome = { exitCode: 3, stdout: "working\n", stderr: "broken\n" };
    const { stderr, stdout } = await build(...words);
    expect(stderr).toStartWith(
      "[ERROR] stdout:\nworking\nbroken\n[ERROR] Dockerfile:4: the command failed with exit code 3",
    );
    expect(stdout).toBe("");
  });

  test("is not shown with -q if the RUN succeeds", async () => {
    const { stderr } = await build("-q");
    expect(stderr).toBe("");
  });

  test("is shown as far as it has arrived if the build is interrupted", async () => {
    outcome = {
      chunks: [
        { stream: "stdout", data: "waiting for\n" },
        { stream: "stderr", data: "the lock\n" },
      ],
      until: new Promise(() => {}),
    };
    const interruption = new AbortController();
    const interrupt = () => interruption.abort(new BoughError("interrupted", { kind: "interrupted" }));
    let seen = "";
    const onStderr = (text: string) => {
      seen += text;
      if (seen.includes("the lock")) interrupt();
    };
    const { stderr, exitCode } = await buildWith(
      { signal: interruption.signal, onStderr },
      ...["--progress", "json"],
    );
    expect(exitCode).toBe(130);
    const events = stderr
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events.filter(({ type }) => ["output", "ran"].includes(type))).toMatchObject([
      { type: "output", stream: "stdout", text: "waiting for\n" },
      { type: "output", stream: "stderr", text: "the lock\n" },
      { type: "ran", succeeded: false, stdout: { bytes: 12 }, stderr: { bytes: 9 } },
    ]);
  });

  test.each([
    ["-q", "[ERROR] stdout:\nwaiting for\nthe lock\n[ERROR] Dockerfile:4: operation"],
    ["--progress=json", '"type":"ran","stage":{"index":0,"name":null},"step":4,'],
  ])("is shown as far as it has arrived if the command hangs: %s", async (option, expected) => {
    const chunks = [
      { stream: "stdout", data: "waiting for\n" },
      { stream: "stderr", data: "the lock\n" },
    ] as const;
    outcome = { chunks: [...chunks], until: new Promise(() => {}) };
    const clock = createManualClock();
    const ended = buildWith({ clock }, "--timeout", "5", option);
    let isOver = false;
    ended.finally(() => {
      isOver = true;
    });
    // Small steps leave each request enough real time.
    while (!isOver) {
      await clock.advance(1000);
      await Bun.sleep(3);
    }
    const { stderr, exitCode } = await ended;
    expect(stderr).toContain(expected);
    expect(stderr).toContain("has not ended after 125 s");
    expect(exitCode).toBe(1);
  });

  test("does not control the terminal; a pipe gets every byte", async () => {
    outcome = { stdout: "\u001b]0;EVIL\u0007a\u001b[2Jb\rc\n" };
    const shown = await buildWith({ hasErrorTerminal: true }, "--progress", "plain", "--no-cache");
    expect(shown.stderr).toContain("[INFO] stdout:\nc\n");
    expect(shown.stderr).not.toContain("\u001b");
    expect((await build("--no-cache")).stderr).toContain(`[INFO] stdout:\n${outcome.stdout}`);
  });
});

test("the summary counts the Dockerfile's steps, cached layers and uploads", async () => {
  expect((await build()).stderr).toMatch(
    /\[INFO\] 5 steps, 0 of 2 layers cached, 1 file uploaded \(3 B\), in \d+\.\d+ s\n$/,
  );
  expect((await build()).stderr).toMatch(
    /\[INFO\] 5 steps, 2 of 2 layers cached, 0 files uploaded, in \d+\.\d+ s\n$/,
  );
});

test("session list shows the build context of a session", async () => {
  await build();
  const environment = { CONTREE_URL: service.url, CONTREE_TOKEN: "t0ken-t0ken", BOUGH_HOME: home };
  const run = (...words: string[]) => runBough(words, { workingDirectory: "/", environment });
  await run("-S", "work", "use", "base:1");
  const sessions = JSON.parse((await run("-f", "json", "session", "list")).stdout);
  // The newest first.
  expect(sessions).toMatchObject([
    { key: "work", context: null },
    { key: expect.stringMatching(/^build:/), context },
  ]);
  const { stdout } = await run("session", "list");
  expect(stdout).toMatch(new RegExp(`^build:.* {2}${context}$`, "m"));
});

test("a large context causes a warning with its largest paths as lines for .dockerignore", async () => {
  writeFiles(context, {
    Dockerfile: "FROM base:1\nCOPY . /app/\nRUN make\n",
    "data/set/one": "1",
    "data/set/two": "2",
  });
  truncateSync(join(context, "data/set/one"), 210_000_000);
  expect(
    (await build()).stderr,
  ).toContain(`[WARN] line 2: COPY . /app/ takes 210 MB in 4 files from the build context.
Its largest paths, as lines for .dockerignore that would leave them out:
  data/set/one  (210 MB in 1 file)
[INFO] staged`);
  writeFiles(context, { ".dockerignore": "data/set/one\n" });
  expect((await build()).stderr).not.toContain("largest paths");
  writeFiles(context, { Dockerfile: "FROM base:1\nCOPY --from=data . /data/\n" });
  expect((await build("--build-context", "data=data")).stderr).toContain(
    "COPY --from=data . /data/ takes 210 MB in 2 files from the build context data.",
  );
});
