/** `scripts/action`: the steps of the GitHub Action, run by bash with a release on the loopback and the embedded engine. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { type GithubCache, startGithubCache } from "../support/github-cache.ts";
import { fill, makeRelease, ownInstaller, serve, signRelease } from "./fake-release.ts";

setDefaultTimeout(120_000);

interface Step {
  id?: string;
  run?: string;
  shell?: string;
  uses?: string;
  if?: string;
  env?: Record<string, string>;
  with?: Record<string, string>;
}

interface Action {
  inputs: Record<string, { description: string; default: string }>;
  outputs: Record<string, { description: string; value: string }>;
  runs: { using: string; steps: Step[] };
}

const folder = join(import.meta.dir, "../../scripts/action");
const action = Bun.YAML.parse(readFileSync(join(folder, "action.yml"), "utf8")) as Action;

describe("the action's file", () => {
  test("has a description and a default for each input, and each is read once", () => {
    const text = JSON.stringify(action.runs);
    for (const [name, input] of Object.entries(action.inputs)) {
      expect([name, typeof input.description, typeof input.default]).toEqual([name, "string", "string"]);
      expect([name, text.includes(`inputs.${name} `)]).toEqual([name, true]);
    }
    const read = [...text.matchAll(/inputs\.([a-z-]+)/g)].map(([, name = ""]) => name);
    expect(read.filter((name) => action.inputs[name] === undefined)).toEqual([]);
    expect(Object.keys(action.outputs).sort()).toEqual(["digest", "imageid", "metadata"]);
  });

  test("is composite, of bash and of GitHub's actions for its cache, and no script has an expression in it", () => {
    expect(action.runs.using).toBe("composite");
    for (const { run, shell, uses } of action.runs.steps) {
      expect(uses ?? shell).toMatch(/^(bash|actions\/(cache|github-script)@v\d+)$/);
      expect(run ?? "").not.toContain("${{");
    }
    for (const name of readdirSync(folder).filter((each) => each.endsWith(".bash")))
      expect(readFileSync(join(folder, name), "utf8")).not.toContain("${{");
  });
});

/** A job on a runner: its directories, its files for outputs, and the path that steps have extended. */
class Job {
  readonly directory = temporaryDirectory();
  readonly workspace = join(this.directory, "workspace");
  private readonly action = join(this.directory, "action");
  private readonly temp = join(this.directory, "temp");

  /** What the job's actions are told of its cache. */
  readonly told: Readonly<Record<string, string>>;

  constructor(cache?: GithubCache) {
    this.told = cache?.environmentFor("refs/heads/main") ?? {};
    for (const path of [this.workspace, this.temp]) mkdirSync(path);
    cpSync(folder, this.action, { recursive: true });
    cpSync(ownInstaller(), join(this.action, "install.sh"));
  }

  /** Runs the steps with an id, as GitHub does: until one fails. Another `home` is another machine with the same cache. */
  async run(inputs: Record<string, string>, home = join(this.directory, "home")) {
    const files = {
      GITHUB_PATH: join(this.directory, "path"),
      GITHUB_OUTPUT: join(this.directory, "output"),
    };
    for (const file of Object.values(files)) writeFileSync(file, "");
    let output = "";
    for (const { run, env = {} } of action.runs.steps.filter((step) => step.run !== undefined)) {
      const values = Object.entries(env).map(([name, value]) => [name, this.evaluate(value, inputs)]);
      const path = [
        ...readFileSync(files.GITHUB_PATH, "utf8").trim().split("\n").reverse(),
        process.env.PATH,
      ];
      const child = Bun.spawn(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", `exec 2>&1\n${run}`],
        {
          cwd: this.workspace,
          env: {
            ...this.repository,
            ...{ PATH: path.join(":"), HOME: home, BOUGH_HOME: join(home, "state"), GITHUB_ACTIONS: "true" },
            ...{ GITHUB_ACTION_PATH: this.action, RUNNER_TEMP: this.temp, GITHUB_WORKSPACE: this.workspace },
            ...files,
            ...Object.fromEntries(values),
          },
          stdout: "pipe",
        },
      );
      output += await new Response(child.stdout).text();
      const exitCode = await child.exited;
      if (exitCode !== 0) return { exitCode, output, outputs: {} };
    }
    return { exitCode: 0, output, outputs: readOutputs(files.GITHUB_OUTPUT) };
  }

  get cacheDirectory(): string {
    return join(this.temp, "bough-cache");
  }

  get leftInTemp(): string[] {
    return readdirSync(this.temp).sort();
  }

  /** What a runner sets for each step. */
  readonly repository = {
    GITHUB_REF: "refs/heads/main",
    GITHUB_SHA: "0".repeat(40),
    GITHUB_EVENT_NAME: "push",
  };

  /** The outputs of the step in JavaScript. */
  private readRuntime(): Map<string, string> {
    const outputs = new Map<string, string>();
    const script = action.runs.steps.find(({ id }) => id === "runtime")?.with?.script ?? "";
    const core = {
      setSecret: () => undefined,
      setOutput: (name: string, value: string) => outputs.set(name, value),
    };
    new Function("core", "process", script)(core, {
      env: this.told,
    });
    return outputs;
  }

  private evaluate(given: string, inputs: Record<string, string>): string {
    const runtime = (inputs.cache ?? "true") === "true" ? this.readRuntime() : new Map<string, string>();
    const value = given.replace(/\$\{\{ steps\.runtime\.outputs\.(\w+) \}\}/g, (_, name: string) => {
      return runtime.get(name) ?? "";
    });
    return value.replace(/\$\{\{ inputs\.([a-z-]+) \}\}/g, (_, name: string) => {
      return inputs[name] ?? action.inputs[name]?.default ?? "";
    });
  }
}

function readOutputs(path: string): Record<string, string> {
  const text = readFileSync(path, "utf8");
  const blocks = [...text.matchAll(/^(\w+)<<(\S+)\n(.*?)\n\2$/gms)].map(([, name = "", , value = ""]) => [
    name,
    value,
  ]);
  const lines = [...text.replace(/^(\w+)<<(\S+)\n.*?\n\2$/gms, "").matchAll(/^(\w+)=(.*)$/gm)];
  return Object.fromEntries([...lines.map(([, name, value]) => [name, value]), ...blocks]);
}

function serveRelease() {
  const release = makeRelease();
  fill(release, `[ "$1" != --version ] || { echo 1.2.3; exit; }\nexec ${compileBough()} "$@"`);
  return { release, server: serve(release) };
}

test("installs a verified release, builds, and keeps the layers for another machine", async () => {
  const { server } = serveRelease();
  using _ = server;
  await using cache = startGithubCache();
  const job = new Job(cache);
  cpSync("/bin/busybox", join(job.workspace, "busybox"));
  const dockerfile = [
    "FROM scratch AS base",
    "COPY busybox /bin/sh",
    "COPY busybox /bin/cat",
    "ARG TITLE",
    'RUN --mount=type=secret,id=key cat /run/secrets/key > /value && echo "$TITLE" > /title',
    `RUN --mount=type=secret,id=many [ "$(cat /run/secrets/many)" = "$(printf 'a "b"\\n\\nid=c')" ]`,
    "LABEL text=end-0",
    "FROM base AS other",
  ];
  writeFileSync(join(job.workspace, "ci.Dockerfile"), dockerfile.join("\n"));
  writeFileSync(join(job.workspace, "bough.lock"), '{"version": 1, "references": []}');
  const evil = join(job.directory, "evil");
  const title = `"; touch ${evil}; $(touch ${evil}) \`touch ${evil}\` '${"$"}{HOME}`;
  const inputs = {
    ...{ release: server.url, version: "1.2.3", packages: "", file: "ci.Dockerfile", target: "base" },
    tags: "app:1, app:2\napp:3\n",
    labels: `title=${title}\n`,
    "build-args": `TITLE=${title}\r\n\n`,
    secrets: 'key=val=ue $x\n"many=a ""b""\n\nid=c" \n',
    platforms: `linux/${process.arch === "x64" ? "amd64" : process.arch},\n`,
    lock: "bough.lock",
    outputs: "type=oci,dest=image.tar",
  };
  const first = await job.run(inputs);
  expect(first).toMatchObject({ exitCode: 0 });
  expect(existsSync(evil)).toBe(false);
  expect(first.output).not.toContain("val=ue");
  expect(job.leftInTemp).toEqual(["bough"]);
  expect(statSync(join(job.workspace, "image.tar")).size).toBeGreaterThan(1000);
  expect(first.outputs).toEqual({
    imageid: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
    metadata: expect.any(String),
  });
  const { tags, steps } = JSON.parse(first.outputs.metadata ?? "");
  expect(tags).toEqual(["app:1", "app:2", "app:3"]);
  expect(steps.some((step: { cached: boolean }) => step.cached)).toBe(false);

  const second = await job.run(inputs, join(job.directory, "another"));
  expect(second.output).toMatch(/4 of 4 layers cached/);
  expect(second.outputs.digest).toBe(first.outputs.digest ?? "");
  expect(cache.entries.map(({ key }) => key.replace(/-1.*/, ""))).toEqual(["bough-pack", "bough-index"]);
  expect(second.output).not.toContain(job.told.ACTIONS_RUNTIME_TOKEN ?? "?");

  // A server whose cache bough can't use.
  const others = { ...inputs, cache: "directory" };
  expect((await job.run(others, join(job.directory, "third"))).exitCode).toBe(0);
  expect(readdirSync(job.cacheDirectory)).toContain("index.json");
  expect((await job.run(others, join(job.directory, "fourth"))).output).toMatch(/4 of 4 layers cached/);
});

test("tags by rules, and builds without a cache where there is none", async () => {
  const { server } = serveRelease();
  using _ = server;
  const job = new Job();
  writeFileSync(join(job.workspace, "Dockerfile"), "FROM scratch\nCOPY Dockerfile /\n");
  const names = { tags: "registry.example/Team/app", "tag-from": "auto\nsha\n" };
  const built = await job.run({ release: server.url, version: "1.2.3", packages: "", ...names });
  expect(built).toMatchObject({ exitCode: 0 });
  expect(built.output).toContain("::warning title=bough::this server has no cache that bough can use");
  const { tags } = JSON.parse(built.outputs.metadata ?? "");
  expect(tags).toEqual(["registry.example/team/app:main", "registry.example/team/app:sha-0000000"]);
});

test("marks the line of a failed step, and gives no outputs", async () => {
  const { server } = serveRelease();
  using _ = server;
  const job = new Job();
  mkdirSync(join(job.workspace, ".git"));
  cpSync("/bin/busybox", join(job.workspace, "busybox"));
  writeFileSync(
    join(job.workspace, "Dockerfile"),
    'FROM scratch\nCOPY busybox /bin/sh\nRUN echo "::set-output name=digest::evil"; exit 7\n',
  );
  const ended = await job.run({ release: server.url, version: "1.2.3", packages: "", cache: "false" });
  expect(ended).toMatchObject({ exitCode: 1, outputs: {} });
  expect(ended.output).toMatch(/^::error file=Dockerfile,line=3,.*exit code 7/m);
  expect(existsSync(job.cacheDirectory)).toBe(false);
  expect(job.leftInTemp).toEqual(["bough"]);
});

test.each<[string, (release: string) => void, Record<string, string>, string]>([
  [
    "a release that is not signed for this version",
    (release) => signRelease(release, { comment: "bough 0.0.1 commit x" }),
    {},
    "the release is not bough 1.2.3",
  ],
  ["another version", () => {}, { version: "9.9.9" }, "is not bough 9.9.9"],
  [
    "no release, and no bough in the PATH",
    () => {},
    { release: "" },
    "::error title=bough::there is no bough in the PATH",
  ],
  [
    "a secret without a value, whose text is not shown",
    () => {},
    { secrets: "hunter2" },
    "::error title=bough::a line of the input secrets is not ID=VALUE",
  ],
  [
    "a value of several lines without quotes, whose text is not shown",
    () => {},
    { secrets: "key=-----BEGIN\nhunter2/+=\n" },
    "::error title=bough::the input secrets has an id of other characters",
  ],
  [
    "a double quote that is not closed",
    () => {},
    { secrets: 'a=b\n"hunter2=c\n' },
    "::error title=bough::a double quote in the input secrets is not closed",
  ],
  ["what a lock lacks", () => {}, { lock: "missing.lock" }, "missing.lock"],
])("refuses %s", async (_, change, inputs, message) => {
  const { release, server } = serveRelease();
  using __ = server;
  change(release);
  const ended = await new Job().run({ release: server.url, version: "1.2.3", packages: "", ...inputs });
  expect(ended.exitCode).not.toBe(0);
  expect(ended.output).toContain(message);
  expect(ended.output).not.toContain("hunter2");
});
