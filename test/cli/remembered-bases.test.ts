/** Builds on a service of the specification's six calls, which cannot say what a tag names: what this machine has imported or tagged. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { boughOn } from "../fake-service/bough-on.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

const digest = `sha256:${"5".repeat(64)}`;

let context: string;
let state: string;
let service: FakeService;
beforeEach(async () => {
  context = temporaryDirectory();
  state = temporaryDirectory();
  service = await startFakeService({ sixCallsOnly: true });
});
afterEach(() => service.close());

async function bough(...words: string[]) {
  const imports = countImports();
  const ended = await boughOn(service, words, { context, state });
  return { ...ended, imports: countImports() - imports };
}

function build(dockerfile: string, ...options: string[]) {
  writeFiles(context, { Dockerfile: dockerfile });
  return bough("build", ".", ...options);
}

const countImports = () => service.requestsTo("POST /v1/images/import").length;

test.each([
  ["alpine", "alpine:latest"],
  ["docker.io/library/alpine", "docker.io/library/alpine:latest"],
  [`alpine@${digest}`, `docker://alpine:3.20@${digest}`],
])("a base has one image by all of its names: %s and %s", async (one, other) => {
  await build(`FROM ${one}\nRUN one\n`);
  const second = await build(`FROM ${other}\nRUN one\nFROM ${one}\nRUN two\n`);
  expect(second).toMatchObject({ exitCode: 0, imports: 0, runs: ["two"] });
});

test("--no-cache runs the steps again from the same base", async () => {
  await build("FROM alpine:3.20\nRUN one\n");
  const dockerfile = "FROM alpine:3.20\nRUN one\n";
  expect(await build(dockerfile, "--no-cache")).toMatchObject({ exitCode: 0, imports: 0, runs: ["one"] });
});

test.each([[[]], [["--no-cache"]]])(
  "a lost base is imported again, in another context too: %p",
  async (options) => {
    await build("FROM alpine:3.20\nRUN one\n");
    for (const image of [...service.state.images.keys()]) service.state.forgetImage(image);
    context = temporaryDirectory();
    const second = await build("FROM alpine:3.20\nRUN one\n", ...options);
    expect(second).toMatchObject({ exitCode: 0, imports: 1, runs: ["one"] });
  },
);

test.each(["FROM app:1", "FROM tag:app:1"])("%s is the image that this machine has tagged", async (from) => {
  await build("FROM alpine:3.20\nRUN one\n", "--tag", "app:1");
  const image = service.state.tags.get("app:1");
  const second = await build(`${from}\nRUN two\n`);
  expect(second).toMatchObject({ exitCode: 0, imports: 0, runs: ["two"] });
  expect(second.stderr).toContain(`${from} is image ${image}\n`);
});

test.each(["tag:app:1", "app:1"])(
  "use and run take %s for the image that this machine has tagged",
  async (name) => {
    await build("FROM alpine:3.20\nRUN one\n", "--tag", "app:1");
    const image = service.state.tags.get("app:1") ?? "none";
    expect((await bough("-S", "work", "-q", "use", name)).exitCode).toBe(0);
    expect((await bough("-S", "work", "run", "-D", "--", "true")).exitCode).toBe(0);
    expect(service.state.instances.at(-1)?.image).toBe(image);
  },
);

test("an empty list of sessions names the other services that have some", async () => {
  await build("FROM alpine:3.20\nRUN one\n");
  expect((await bough("session", "list")).stderr).not.toContain("no sessions here");
  const { stdout, stderr } = await runBough(["--url", "http://other.test", "session", "list"], {
    workingDirectory: context,
    environment: { BOUGH_HOME: state },
  });
  expect(stdout).not.toContain("build:");
  expect(stderr).toContain("no sessions here, but there are some for 127.0.0.1 (1): --url");
});

test("a tag gets another tag, and both name the image", async () => {
  await build("FROM alpine:3.20\nRUN one\n", "--tag", "app:1");
  expect((await bough("tag", "app:1", "app:2")).exitCode).toBe(0);
  expect(service.state.tags.get("app:2")).toBe(service.state.tags.get("app:1") ?? "none");
  expect(await build("FROM app:2\nRUN two\n")).toMatchObject({ exitCode: 0, imports: 0, runs: ["two"] });
});

test.each(["busybox", `busybox@${digest}`])(
  "%s is imported once by `bough images import`",
  async (reference) => {
    expect((await bough("images", "import", reference)).imports).toBe(1);
    expect(await build(`FROM ${reference}\nRUN one\n`)).toMatchObject({ exitCode: 0, imports: 0 });
  },
);

test("a tag that nobody here has set is not said to be missing", async () => {
  const { exitCode, stderr } = await build("FROM tag:theirs:1\nRUN one\n");
  expect(exitCode).toBe(1);
  expect(stderr).toContain(
    `${service.url} does not support listing images, so tag:theirs:1 cannot be looked up\n`,
  );
  expect(stderr).toContain("Name the image by its UUID.");
});
