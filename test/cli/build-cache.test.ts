/** The RUNs that are run again after a change, over HTTP. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, cpSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { type Ended, runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

let service: FakeService;
/** The context that a test edits. */
let context: string;
/** The machines that build it, one after the other. */
let machines: Machine[];
let builds: number;
/** The scope that the machines share. */
let scope: string;

interface Machine {
  context: string;
  state: string;
}

beforeAll(async () => {
  service = await startFakeService();
  service.state.addImage("base:1");
});
afterAll(() => service.close());

const dockerfile = `FROM base:1
RUN first
ARG LEVEL=1
ENV MODE=fast
RUN second
COPY app /app
RUN third
WORKDIR /work
USER worker
RUN fourth
`;

beforeEach(() => {
  context = makeContext();
  machines = [{ context, state: temporaryDirectory() }];
  builds = 0;
  scope = `test/${crypto.randomUUID()}`;
});

function makeContext(): string {
  const directory = temporaryDirectory();
  writeFiles(directory, {
    Dockerfile: dockerfile,
    "app/a.txt": "a",
    "app/b/c.sh": { text: "c", mode: 0o755 },
  });
  return directory;
}

/** Makes two machines build in turn, each with its own checkout and state. */
function shareByScope(): void {
  machines = [0, 1].map(() => ({ context: temporaryDirectory(), state: temporaryDirectory() }));
}

/** Builds, and returns the names of the RUNs that were run. */
async function build(...options: string[]): Promise<string[]> {
  service.clearRequests();
  const before = service.state.instances.length;
  const { stderr, exitCode } = await runOn(machines[builds++ % machines.length], options);
  expect(stderr).not.toContain("[ERROR]");
  expect(stderr).not.toContain("[WARN] cache:");
  expect(exitCode).toBe(0);
  return (
    service.state.instances
      .slice(before)
      .map(({ command }) => /first|second|third|fourth/.exec(command)?.[0] ?? command)
      // The command that stores the scope's index.
      .filter((command) => command !== ":")
  );
}

function runOn(machine: Machine | undefined, options: readonly string[]): Promise<Ended> {
  const { context: directory, state } = machine ?? { context, state: "" };
  if (directory !== context) {
    rmSync(directory, { recursive: true });
    cpSync(context, directory, { recursive: true, preserveTimestamps: true });
  }
  const sharing = machines.length === 1 ? [] : ["--cache-from", scope, "--cache-to", scope];
  const words = ["--url", service.url, "--token", "t", "build", ".", ...sharing, ...options];
  return runBough(words, { workingDirectory: directory, environment: { BOUGH_HOME: state } });
}

function edit(from: string | RegExp, to: string): void {
  writeFileSync(join(context, "Dockerfile"), dockerfile.replace(from, to));
}

const all = ["first", "second", "third", "fourth"];

test("a first build makes one instance per RUN; a second one makes none and asks only for the base image and the result", async () => {
  expect(await build()).toEqual(all);
  expect(await build()).toEqual([]);
  expect(service.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    "GET /v1/images",
    "GET /v1/images",
  ]);
});

describe.each<[string, () => void]>([
  ["on one machine", () => {}],
  ["on two machines with a scope", shareByScope],
])("run again %s after a change of", (_, share) => {
  test.each<[string, () => void, string[], string[]]>([
    ["a file's time alone: nothing", () => utimesSync(join(context, "app/a.txt"), 1, 1), [], []],
    ["a file's content", () => writeFileSync(join(context, "app/a.txt"), "A"), [], ["third", "fourth"]],
    ["a file's mode", () => chmodSync(join(context, "app/a.txt"), 0o600), [], ["third", "fourth"]],
    ["a file's name", () => writeFiles(context, { "app/new.txt": "a" }), [], ["third", "fourth"]],
    ["a file beside the COPY: nothing", () => writeFiles(context, { "other.txt": "x" }), [], []],
    ["a RUN", () => edit("RUN third", "RUN third --again"), [], ["third", "fourth"]],
    ["an ENV", () => edit("MODE=fast", "MODE=slow"), [], ["second", "third", "fourth"]],
    ["a WORKDIR", () => edit("/work", "/elsewhere"), [], ["fourth"]],
    ["a USER", () => edit("USER worker", "USER other"), [], ["fourth"]],
    ["a build-arg", () => {}, ["--build-arg", "LEVEL=2"], ["second", "third", "fourth"]],
    ["an ARG's default", () => edit("LEVEL=1", "LEVEL=2"), [], ["second", "third", "fourth"]],
    ["a build-arg to its default: nothing", () => {}, ["--build-arg", "LEVEL=1"], []],
    ["a build-arg that no ARG declares: nothing", () => {}, ["--build-arg", "OTHER=2"], []],
    ["a comment: nothing", () => edit("RUN second", "# why\nRUN second"), [], []],
    ["the timeout: nothing", () => {}, ["--timeout", "7"], []],
    ["--no-cache: everything", () => {}, ["--no-cache"], all],
  ])("%s", async (_, change, options, expected) => {
    share();
    await build();
    change();
    expect(await build(...options)).toEqual(expected);
    expect(await build(...options.filter((option) => option !== "--no-cache"))).toEqual([]);
  });
});

test("going back to an earlier state of the context finds its layers again", async () => {
  await build();
  writeFileSync(join(context, "app/a.txt"), "A");
  await build();
  writeFileSync(join(context, "app/a.txt"), "a");
  expect(await build()).toEqual([]);
});

test("after a change only the changed content is uploaded", async () => {
  await build();
  expect(service.requestsTo("POST /v1/files")).toHaveLength(2);
  writeFileSync(join(context, "app/a.txt"), "A");
  await build();
  expect(service.requestsTo("POST /v1/files")).toHaveLength(1);
});

test("no layer is reused for another context or another base image", async () => {
  await build();
  const first = machines;
  context = makeContext();
  machines = [{ context, state: first[0]?.state ?? "" }];
  expect(await build()).toEqual(all);
  machines = first;
  service.state.addImage("base:1");
  expect(await build()).toEqual(all);
});
