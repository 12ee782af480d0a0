/** `bough run IMAGE [ARG...]` means what `docker run` means. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { GlobalOptions } from "../../src/cli/command-line/globals.ts";
import type { Runtime } from "../../src/cli/process/runtime.ts";
import { buildTimeout, findTimeout, type Timeout } from "../../src/cli/service/timeout.ts";
import { maxTimeout } from "../../src/programs/helper.ts";
import type { Service } from "../../src/service/client.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { splitWords } from "../support/words.ts";

const dockerfile = 'FROM base:1\nWORKDIR /srv\nENTRYPOINT ["app", "-v"]\nCMD ["x y"]\n';
const context = temporaryDirectory();
writeFiles(context, { Dockerfile: dockerfile, "some.env": "FROM_FILE=1\n" });

describe("the request", () => {
  let service: FakeService;
  const environment: Record<string, string> = { BOUGH_HOME: temporaryDirectory() };
  const bough = (line: string, more: Record<string, string> = {}) =>
    runBough(["--url", service.url, "--token", "t0ken-t0ken", ...splitWords(line)], {
      workingDirectory: context,
      environment: { ...environment, ...more },
    });
  const lastRequest = () => service.requestsTo("POST /v1/instances").at(-1)?.json;

  beforeAll(async () => {
    service = await startFakeService();
    service.state.addImage("base:1");
    for (const image of ["app", "plain"]) {
      const { exitCode } = await bough(`build -q . --docker --tag ${image}`);
      expect(exitCode).toBe(0);
      writeFiles(context, { Dockerfile: 'FROM base:1\nCMD ["sh"]\n' });
    }
    await bough("-S given use base:1");
  });
  afterAll(() => service.close());

  const thrown = { disposable: true };
  test.each<[line: string, request: Record<string, unknown>]>([
    ["app", { command: "app", args: ["-v", "x y"], cwd: "/srv", ...thrown }],
    ["app one 'two words'", { command: "app", args: ["-v", "one", "two words"], ...thrown }],
    ["app -e --name", { command: "app", args: ["-v", "-e", "--name"], ...thrown }],
    ["app -- one", { command: "app", args: ["-v", "one"], ...thrown }],
    ["--entrypoint ls app", { command: "ls", ...thrown }],
    ["--entrypoint ls app -l /", { command: "ls", args: ["-l", "/"], ...thrown }],
    ["--entrypoint '' app ls /", { command: "ls", args: ["/"], ...thrown }],
    ["plain ls /", { command: "ls", args: ["/"], ...thrown }],
    ["-s app 'ls | wc'", { shell: true, command: "ls | wc", ...thrown }],
    ["--rm -e A=1 --env-file some.env -w /x --hostname web -u 7:8 app", { ...thrown, cwd: "/x", uid: 7 }],
    ["--rm -e A=1 --env-file some.env app", { env: { A: "1", FROM_FILE: "1" }, ...thrown }],
    ["--workdir /x --hostname web app", { cwd: "/x", hostname: "web" }],
    ["-d app", { command: "app", ...thrown }],
    ["--keep app", { command: "app", disposable: false }],
    ["-S other app", { command: "app", disposable: false }],
    ["-S other --rm app", { command: "app", ...thrown }],
    // In a session, a command is run as it is.
    ["-S given -- ls", { command: "ls", disposable: false }],
    ["-S given --entrypoint ls -- /", { command: "ls", args: ["/"], disposable: false }],
    ["--use app -- ls", { command: "ls", disposable: false }],
  ])("of bough run %s", async (line, request) => {
    const session = /^-S \w+ /.exec(line)?.[0] ?? "";
    const { exitCode, stderr } = await bough(`${session}run ${line.slice(session.length)}`);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
    expect(lastRequest()).toMatchObject(request);
  });

  test("BOUGH_SESSION is a session that was chosen, as -S", async () => {
    await bough("run app", { BOUGH_SESSION: "chosen" });
    expect(lastRequest()).toMatchObject({ disposable: false });
  });

  test.each([
    ["plain -l /", "-l is given where the command is expected: the image has no ENTRYPOINT"],
    ["--keep -D app", "--keep and -D cannot be used together"],
    ["--entrypoint ls -s app x", "--entrypoint and --shell cannot be used together"],
    ["--entrypoint '' app", "An empty --entrypoint leaves the image without its ENTRYPOINT and CMD."],
    [
      "--hostname 'a b' app",
      '--hostname takes up to 63 letters, digits, dots, hyphens and underscores, not "a b"',
    ],
    ["--name web -p 80:80 app", "bough run: unknown option --name\nCommands have no names"],
  ])("bough run %s is refused", async (line, message) => {
    const { exitCode, stderr } = await bough(`run ${line}`);
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(message) });
  });

  test("with docker's letters, -t is a terminal, -h a host name, -p a port and -m a limit", async () => {
    const docker = { BOUGH_DOCKER: "1" };
    for (const line of ["run -t app", "run -it app", "run -i -t app"])
      expect((await bough(line, docker)).stderr).toContain("bough run -it needs a terminal");
    expect((await bough("run --docker -t app")).stderr).toContain("bough run -it needs a terminal");
    expect((await bough("--docker run -p 80:80 -P -l a=b app")).stderr).toContain(
      "bough run: unknown options -p, -P\n-p: No ports are published",
    );
    const { stderr } = await bough("run -h web -l a=b --init app", docker);
    expect(lastRequest()).toMatchObject({ hostname: "web", command: "app" });
    expect(stderr).toBe(
      "[WARN] -l is ignored: a command is not a container that other commands could find\n[WARN] --init is ignored: what a command leaves behind ends with it\n",
    );
    expect((await bough("run -h", docker)).stdout).toStartWith("Run an image as docker run does");
  });
});

test("on the engine a run leaves no session behind, and its image can be removed", async () => {
  const home = temporaryDirectory();
  const bough = (...words: string[]) =>
    runBough(["--local", ...words], {
      workingDirectory: home,
      environment: { BOUGH_HOME: join(home, "state") },
    });
  await bough("images", "import", await makeBusyboxLayout(join(home, "layout")), "--tag", "base:1");
  const script = "touch /made; hostname; cat /etc/hosts";
  const { stdout, stderr } = await bough(
    "run",
    "--hostname",
    "web",
    "-v",
    ".:/w",
    "base:1",
    "sh",
    "-c",
    script,
  );
  expect({ stdout, stderr }).toEqual({
    stdout: expect.stringMatching(/^web\n[\s\S]*127\.0\.1\.1\tweb\n/),
    stderr: "",
  });
  expect(JSON.parse((await bough("session", "list", "-f", "json")).stdout)).toEqual([]);
  expect((await bough("rmi", "base:1")).exitCode).toBe(0);
});

const local = { CONTREE_URL: "" };
const remote = { CONTREE_URL: "http://service.example" };
test.each<
  [given: Timeout, max: number | undefined, environment: object, hasTerminal: boolean, seconds: number]
>([
  [undefined, maxTimeout, local, false, maxTimeout],
  ["none", maxTimeout, local, true, maxTimeout],
  [90, maxTimeout, local, false, 90],
  [undefined, 7200, remote, false, 600],
  [undefined, 7200, remote, true, 7200],
  [undefined, undefined, remote, true, 3600],
  ["none", 7200, remote, false, 7200],
])(
  "a command with the timeout %p, where the service's maximum is %p",
  async (timeout, max, environment, hasTerminal, seconds) => {
    const runtime = { environment: { ...environment }, platform: "linux" } as unknown as Runtime;
    const globals = { local: environment === local } as GlobalOptions;
    const service = {
      address: "a service",
      capabilities: { maxTimeoutSeconds: async () => max },
    } as unknown as Service;
    expect(await findTimeout({ timeout, hasTerminal }, { runtime, globals }, service)).toBe(seconds);
    if (timeout !== undefined) expect(await buildTimeout(timeout, service)).toBe(seconds);
    else expect(await buildTimeout(timeout, service)).toBe(600);
  },
);
