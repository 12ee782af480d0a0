/** `--progress rawjson`: BuildKit's statuses, as docker buildx prints them and `docker compose build` reads them. */
import { beforeAll, describe, expect, test } from "bun:test";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

const environment: Record<string, string> = {};
beforeAll(async () => {
  environment.BOUGH_HOME = temporaryDirectory();
  const layout = await makeBusyboxLayout(temporaryDirectory());
  await run(temporaryDirectory(), "images", "import", layout, "--tag", "base:1");
});

const run = (workingDirectory: string, ...words: string[]) =>
  runBough(["--local", ...words], { workingDirectory, environment });
const names = (shown: readonly Shown[]) => shown.map(({ name }) => name);

function makeProject(files: Record<string, string>): string {
  const directory = temporaryDirectory();
  writeFiles(directory, files);
  return directory;
}

interface Shown {
  name: string;
  state: "done" | "cached" | "running" | string;
  output: string;
}

/** Reads the stream as a program that draws it does, and returns what is on the screen at the end; throws for what has no sense. */
function draw(stderr: string): { shown: Shown[]; warnings: string[]; others: string[] } {
  const vertexes = new Map<string, Shown>();
  const warnings: string[] = [];
  const others: string[] = [];
  const text = (data: string) => Buffer.from(data, "base64").toString();
  const known = (digest: string): Shown => {
    const vertex = vertexes.get(digest);
    if (vertex === undefined) throw new Error(`nothing is known of ${digest}`);
    if (vertex.state !== "running") throw new Error(`${vertex.name} has ended`);
    return vertex;
  };
  for (const line of stderr.split("\n")) {
    if (!line.startsWith("{")) {
      if (line !== "") others.push(line);
      continue;
    }
    const status = JSON.parse(line);
    for (const { digest, name, inputs = [], started, completed, cached, error } of status.vertexes ?? []) {
      expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/);
      expect(Date.parse(started)).toBeLessThanOrEqual(Date.parse(completed ?? started));
      for (const input of inputs) if (!vertexes.has(input)) throw new Error(`${name} comes before its input`);
      const ended = error ?? (cached === true ? "cached" : "done");
      const state = completed === undefined ? "running" : ended;
      const before = vertexes.get(digest);
      if (before === undefined) vertexes.set(digest, { name, state, output: "" });
      else Object.assign(known(digest), { name, state });
    }
    for (const { id, vertex, timestamp, current } of status.statuses ?? []) {
      known(vertex);
      expect([typeof id, typeof timestamp, typeof current]).toEqual(["string", "string", "number"]);
    }
    for (const { vertex, stream, data } of status.logs ?? [])
      known(vertex).output += `${stream}:${text(data)}`;
    for (const { short, vertex } of status.warnings ?? []) {
      // What draws the stream shows none of a vertex that it does not know.
      if (!vertexes.has(vertex)) throw new Error(`the warning "${text(short)}" belongs to nothing`);
      warnings.push(text(short));
    }
  }
  return { shown: [...vertexes.values()], warnings, others };
}

const isStep = ({ name }: Shown) => /\d\/\d+\] /.test(name);
const steps = (shown: readonly Shown[]) => shown.filter(isStep).map(({ name, state }) => `${name}: ${state}`);

const stages = makeProject({
  Dockerfile: [
    "FROM base:1 AS base",
    "COPY tool /bin/tool",
    "FROM base AS build",
    "ENV A=1",
    "WORKDIR /src",
    "RUN echo hello; echo err >&2; echo $A > a",
    "FROM base",
    "COPY --from=build /src/a /a",
    'CMD ["cat", "/a"]',
    "",
  ].join("\n"),
  tool: "tool",
  "only/Dockerfile": "FROM scratch\nCOPY x /x\n",
  "only/x": "x",
  "warned/Dockerfile": "FROM scratch AS only\nENV A b\nCOPY x /x\n",
  "warned/x": "x",
  "slow/Dockerfile": "FROM base:1\nRUN echo begun && sleep 60\n",
  "bad/Dockerfile": "FROM base:1\nRUN echo before; exit 7\n",
});

/** The names are those that buildx 0.29.1 prints of the same Dockerfiles. */
describe("the steps of", () => {
  test("several stages, made and cached: only what makes a layer, and an image of FROM", async () => {
    const expected = [
      "[base 1/2] FROM base:1",
      "[base 2/2] COPY tool /bin/tool",
      "[build 1/2] WORKDIR /src",
      "[build 2/2] RUN echo hello; echo err >&2; echo $A > a",
      "[stage-2 1/1] COPY --from=build /src/a /a",
    ];
    const words = ["build", "--docker", "--tag", "app:1", "--progress", "rawjson"];
    const { shown, others } = draw((await run(stages, ...words)).stderr);
    expect(others).toEqual([]);
    expect(steps(shown).map((step) => step.replace(/: done$/, ""))).toEqual(expected);
    expect(
      shown
        .find(({ name }) => name.includes("RUN"))
        ?.output.split(/(?=\d:)/)
        .sort(),
    ).toEqual(["1:hello\n", "2:err\n"]);
    expect(shown.filter((vertex) => !isStep(vertex)).map(({ name, state }) => [name, state])).toEqual([
      ["[internal] load build context", "done"],
      ["exporting to image", "done"],
    ]);
    const again = draw((await run(stages, ...words)).stderr).shown;
    expect(steps(again).sort()).toEqual(expected.map((name) => `${name}: cached`).sort());
  });

  test("a single stage from scratch", async () => {
    const { stderr } = await run(stages, "build", "--docker", "only", "--progress", "rawjson");
    expect(steps(draw(stderr).shown)).toEqual(["[1/1] COPY x /x: done"]);
  });

  test.each([
    { title: "one platform", options: [], label: "" },
    { title: "several platforms", options: ["--platform", "linux/amd64,linux/arm64"], label: "linux/amd64 " },
  ])("the only stage, which has a name, for $title: it is not shown", async ({ options, label }) => {
    const words = ["build", "--docker", "warned", "--progress", "rawjson", ...options];
    const { shown, warnings } = draw((await run(stages, ...words)).stderr);
    expect(names(shown)).toContain(`[${label}1/1] COPY x /x`);
    // BuildKit's own text, at the place where it shows what it says of the Dockerfile.
    expect(warnings).toEqual([
      '"ENV key=value" should be used instead of legacy "ENV key value" format (line 2)',
    ]);
    expect(names(shown)).toContain("[internal] load build definition");
  });

  test("stages for several platforms: each step once for each, with its own", async () => {
    const platforms = ["linux/amd64", "linux/arm64"];
    writeFiles(stages, {
      "two/Dockerfile": "FROM scratch AS a\nCOPY x /x\nFROM scratch\nCOPY --from=a /x /y\n",
      "two/x": "x",
    });
    const words = ["build", "--docker", "two", "--platform", platforms.join(), "--progress", "rawjson"];
    const { shown } = draw((await run(stages, ...words)).stderr);
    expect(names(shown.filter(isStep)).sort()).toEqual(
      platforms.flatMap((platform) => [
        `[${platform} a 1/1] COPY x /x`,
        `[${platform} stage-1 1/1] COPY --from=a /x /y`,
      ]),
    );
  });

  test("an interrupted build: nothing is left running", async () => {
    const stop = new AbortController();
    const { stderr } = await runBough(["--local", "build", "--docker", "slow", "--progress", "rawjson"], {
      ...{ workingDirectory: stages, environment, signal: stop.signal },
      onStderr: (text) => text.includes('"logs"') && stop.abort(new Error("interrupted")),
    });
    expect(steps(draw(stderr).shown).at(-1)).toBe("[2/2] RUN echo begun && sleep 60: context canceled");
  });

  test("a build that fails: the step has the error, which follows as text", async () => {
    const { stderr, exitCode } = await run(stages, "build", "--docker", "bad", "--progress", "rawjson");
    expect(exitCode).toBe(1);
    const { shown, others } = draw(stderr);
    const [, failed] = shown.filter(isStep);
    expect(failed).toMatchObject({ name: "[2/2] RUN echo before; exit 7", output: "1:before\n" });
    expect(failed?.state).toContain("exit code 7");
    expect(others.join("\n")).toMatch(/^\[ERROR\] .*exit code 7/);
  });

  test("targets of a bake, one of which fails: each with its target's name", async () => {
    const file = { target: { one: { context: "." }, bad: { context: "bad" } } };
    writeFiles(stages, { "bake.json": JSON.stringify(file) });
    const ended = await run(
      stages,
      "bake",
      "-f",
      "bake.json",
      "one",
      "bad",
      "--progress",
      "rawjson",
      "--no-cache",
    );
    expect(ended.exitCode).toBe(1);
    const { shown } = draw(ended.stderr);
    expect(names(shown)).toContain("[one base 2/2] COPY tool /bin/tool");
    const failed = shown.find(({ name }) => name === "[bad 2/2] RUN echo before; exit 7");
    expect(failed?.state).toContain("exit code 7");
    // Nothing is left running.
    expect(shown.filter(({ state }) => state === "running")).toEqual([]);
  });

  test("the only target of a bake: without its name", async () => {
    writeFiles(stages, { "only.json": JSON.stringify({ target: { one: { context: "only" } } }) });
    const { stderr } = await run(stages, "bake", "-f", "only.json", "one", "--progress", "rawjson");
    expect(names(draw(stderr).shown)).toEqual(
      expect.arrayContaining(["[1/1] COPY x /x", "[internal] load build context", "exporting to image"]),
    );
  });

  test("a bake with a cache of another machine: a warning", async () => {
    writeFiles(stages, {
      "warned.json": JSON.stringify({ target: { one: { context: "only", "cache-from": ["type=gha"] } } }),
    });
    const { stderr } = await run(stages, "bake", "-f", "warned.json", "one", "--progress", "rawjson");
    const { warnings, others } = draw(stderr);
    expect(warnings.join()).toContain("type=gha needs ACTIONS_RESULTS_URL");
    expect(others).toEqual([]);
  });
});
