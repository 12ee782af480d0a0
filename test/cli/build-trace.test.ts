/** `--trace` and `--timings`: how a build spent its time. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import type { RunOutcome } from "../fake-service/state.ts";
import { type BoughOptions, runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { readTrace, type Trace } from "../support/trace-format.ts";

const stages = [
  ...["FROM base:1 AS build", "COPY a /", "RUN make"],
  ...["FROM base:1 AS docs", "RUN docs"],
  ...["FROM base:1", "COPY --from=build /srv /srv", "RUN --mount=from=docs,target=/d last", "COPY a /b", ""],
].join("\n");

let service: FakeService;
let context: string;
let run: (command: string) => RunOutcome;
beforeEach(async () => {
  run = () => ({ stdout: "fine\n" });
  service = await startFakeService({ run: ({ command }) => run(command) });
  service.state.addImage("base:1");
  service.state.tree.set("/srv", { type: "directory" });
  service.state.tree.set("/srv/x", { type: "file", content: "x" });
  context = temporaryDirectory();
  writeFiles(context, { Dockerfile: stages, a: "abc" });
});
afterEach(() => service.close());

function build(words: string[], options: Partial<BoughOptions> = {}) {
  const environment = {
    CONTREE_URL: service.url,
    CONTREE_TOKEN: "t0ken-t0ken",
    BOUGH_HOME: join(context, "..", "h"),
  };
  return runBough(["build", ...words], { workingDirectory: context, environment, ...options });
}

function trace(): Trace {
  const text = readFileSync(join(context, "t.json"), "utf8");
  expect(text).not.toContain("t0ken");
  return readTrace(text);
}

const named = ({ slices }: Trace, category: string) => slices.filter((slice) => slice.category === category);

describe("--trace", () => {
  test("has stages, steps and their activities, requests, and the time on the service", async () => {
    const { exitCode, stderr } = await build(["--docker", "--no-cache", "--trace", "t.json"]);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    const read = trace();
    const threads = Map.groupBy(named(read, "step"), ({ thread }) => thread);
    expect(
      Object.fromEntries([...threads].map(([thread, steps]) => [thread, steps.map(({ name }) => name)])),
    ).toEqual({
      build: ["FROM base:1 AS build", "COPY a /", "RUN make"],
      docs: ["FROM base:1 AS docs", "RUN docs"],
      "stage-2": [
        ...[
          "FROM base:1",
          "COPY --from=build /srv /srv",
          "RUN --mount=from=docs,target=/d last",
          "COPY a /b",
        ],
        "layer of the staged files, COPY a /b",
      ],
    });
    expect(read.arrows).toEqual([
      ["RUN make", "COPY --from=build /srv /srv"],
      ["RUN docs", "RUN --mount=from=docs,target=/d last"],
    ]);
    const activities = named(read, "activity").map(({ name }) => name);
    expect(activities).toEqual(expect.arrayContaining(["read files", "upload 1 file", "operation"]));
    const spawned = service.requestsTo("POST /v1/instances").length;
    const requests = named(read, "request").filter(({ name }) => name === "POST /v1/instances");
    expect(requests.map(({ args }) => args.status)).toEqual(Array(spawned).fill(201));
    // What ran one after the other is in a row of its own, and each request says what it waited for.
    const chain = named(read, "chain");
    expect(chain.map(({ thread }) => thread)).toEqual(chain.map(() => "one after the other"));
    expect(chain.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["POST /v1/instances", "operation"]),
    );
    expect(read.waits.length).toBeGreaterThan(0);
    const waiting = named(read, "request").filter(({ args }) => args.waitedFor !== undefined);
    expect(read.waits.map(([from]) => from).sort()).toEqual(
      waiting.map(({ args }) => String(args.waitedFor)).sort(),
    );
    const last = named(read, "step").find(({ name }) => name.startsWith("COPY --from"));
    expect(last?.args.waitedFor).toBeString();
    const operations = named(read, "service");
    expect(operations.map(({ name }) => name)).toEqual(expect.arrayContaining(["RUN make", "RUN docs"]));
    expect(operations[0]).toMatchObject({
      process: new URL(service.url).host,
      args: { seconds: expect.any(Number) },
    });
    expect(readdirSync(context).sort()).toEqual(["Dockerfile", "a", "t.json"]);
  });

  test("is written if the build fails, and the build's error is reported", async () => {
    writeFileSync(join(context, "t.json"), "of an earlier build");
    run = (command) => ({ exitCode: command.includes("make") ? 3 : 0 });
    const { exitCode, stderr } = await build(["--trace", "t.json"]);
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("exit code 3"),
    });
    expect(named(trace(), "step").at(-1)).toMatchObject({ name: "RUN make", args: { failed: true } });
  });

  test("is written if the build is stopped, with the running step as unfinished", async () => {
    const stop = new AbortController();
    run = () => ({ until: new Promise(() => setTimeout(() => stop.abort(new Error("stopped")))) });
    const { exitCode } = await build(["--trace", "t.json"], { signal: stop.signal });
    expect(exitCode).not.toBe(0);
    expect(named(trace(), "step").at(-1)).toMatchObject({ name: "RUN make", args: { unfinished: true } });
  });

  test.each<[string, string[], string]>([
    [
      "a path that can't be written",
      ["--trace", "none/t.json"],
      "--trace none/t.json: there is no directory none",
    ],
    ["the Dockerfile", ["--trace", "Dockerfile"], "--trace Dockerfile: this is the build's Dockerfile"],
    ["another result", ["--trace", "m", "--iidfile", "m"], "--iidfile m and --trace m are the same file"],
    ["a check", ["--trace", "t.json", "--check"], "--check and --trace cannot be used together"],
    ["timings of a check", ["--timings", "--check"], "--check and --timings cannot be used together"],
  ])("%s is refused before any request to the service", async (_, words, message) => {
    const { exitCode, stderr } = await build(words);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(message) });
    expect(service.requests).toEqual([]);
    expect(existsSync(join(context, "t.json"))).toBe(false);
    expect(readFileSync(join(context, "Dockerfile"), "utf8")).toBe(stages);
  });
});

describe("--timings", () => {
  test("prints the critical path and the slowest steps after the build's last line, also with -q", async () => {
    const { stderr, stdout } = await build(["-q", "--timings", "--no-cache"]);
    expect(stderr).toMatch(/^critical path: \d+ steps, [\d.]+ s of [\d.]+ s\n {2}\[\d+\/9\] /m);
    const logged = (await build(["--timings"])).stderr;
    expect(/ of ([\d.]+ s)$/m.exec(logged)?.[1]).toBe(/cached, .*, in ([\d.]+ s)$/m.exec(logged)?.[1] ?? "");
    expect(stderr).toMatch(/^\d+ requests, \d+ of them one after the other, in [\d.]+ s$/m);
    expect(stderr).toMatch(/^slowest steps:\n {2}\[\d+\/9\] .+ [\d.]+ s {2}[█▏]+$/m);
    for (const line of stderr.slice(stderr.indexOf("critical")).split("\n"))
      expect(Bun.stringWidth(line)).toBeLessThan(80);
    expect(stdout).toMatch(/^[0-9a-f-]{36}\n$/);
  });

  test("is the event before the last one with --progress json", async () => {
    const { stderr } = await build(["--timings", "--docker", "--target", "docs", "--progress", "json"]);
    const events = stderr
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events.at(-1).type).toBe("finished");
    const { criticalPath, slowest, seconds, type, requests } = events.at(-2);
    expect(requests.inSequence).toBeLessThanOrEqual(requests.count);
    expect({ type, seconds }).toEqual({ type: "timings", seconds: expect.any(Number) });
    expect(criticalPath.at(-1)).toEqual({
      ...{ stage: { index: 1, name: "docs" }, step: 5, line: 5, instruction: "RUN docs" },
      ...{ start: expect.any(Number), seconds: expect.any(Number) },
    });
    expect(slowest.length).toBeGreaterThan(0);
    expect(stderr).not.toContain("critical path:");
  });
});
