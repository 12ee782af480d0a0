/** ENV, WORKDIR, USER, ENTRYPOINT and CMD of an image that bough has built, in builds and commands that start from it. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import type { InstanceBody } from "../../src/service/wire/instance.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

function contextOf(dockerfile: string): string {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: dockerfile });
  return context;
}

const own = `FROM base:1
RUN echo bob:x:7:7::/home/bob:/bin/sh >> /etc/passwd
ARG S=secret
ENV A=1 B="two words"
WORKDIR /srv/w
USER bob
`;
const printSettings = 'echo "$A|$B|$S|$(pwd)|$(id -u):$(id -g)|$HOME"';

describe("the engine", () => {
  const environment = { BOUGH_HOME: temporaryDirectory() };
  const bough = (words: readonly string[], workingDirectory = "/") =>
    runBough(["--local", ...words], { workingDirectory, environment });
  const build = (dockerfile: string, ...options: string[]) =>
    bough(["build", "-q", ".", ...options], contextOf(dockerfile));
  beforeAll(async () => {
    const layout = await makeBusyboxLayout(temporaryDirectory());
    expect((await bough(["images", "import", layout, "--tag", "base:1"])).exitCode).toBe(0);
    for (const mode of ["--no-docker", "--docker"])
      expect((await build(own, mode, "--tag", `own:${mode.slice(2)}`)).exitCode).toBe(0);
  });
  afterAll(() => rmSync(environment.BOUGH_HOME, { recursive: true, force: true }));

  test.each<[string, string[], string]>([
    ["all settings apply", [], "1|two words||/srv/w|7:7|/home/bob"],
    ["options override settings", ["-e", "A=3", "-u", "5:6", "-C", "/tmp"], "3|two words||/tmp|5:6|/"],
    ["a user by name", ["-u", "root"], "1|two words||/srv/w|0:0|/root"],
    ["a user and group by name", ["-u", "bob:daemon"], "1|two words||/srv/w|7:1|/home/bob"],
    ["--no-config ignores the settings", ["--no-config"], "|||/|0:0|/root"],
  ])("bough run: %s", async (_, options, expected) => {
    for (const tag of ["own:no-docker", "own:docker"]) {
      const { stdout, stderr } = await bough([
        "run",
        "-D",
        "--use",
        tag,
        ...options,
        "-s",
        "--",
        printSettings,
      ]);
      expect({ stdout, stderr }).toMatchObject({ stdout: `${expected}\n` });
    }
  });

  test.each<[string, string, string]>([
    ["CMD", 'CMD ["sh", "-c", "echo $A in $(pwd)"]', "1 in /srv/w\n"],
    ["CMD for a shell", "CMD echo $A as $(id -u)", "1 as 7\n"],
    ["ENTRYPOINT", 'ENTRYPOINT ["echo", "a  b"]', "a  b\n"],
    ["ENTRYPOINT before CMD", 'ENTRYPOINT ["echo", "a"]\nCMD ["b", "$A"]', "a b $A\n"],
    ["ENTRYPOINT of one empty word", 'ENTRYPOINT [""]\nCMD ["echo", "c"]', "c\n"],
  ])("bough run without a command: %s", async (name, instructions, expected) => {
    const tag = `command:${name.replaceAll(" ", "-").toLowerCase()}`;
    await build(`FROM own:docker\n${instructions}\n`, "--docker", "--tag", tag);
    expect(await bough(["run", "-D", "--use", tag])).toMatchObject({ stdout: expected, exitCode: 0 });
    const given = await bough(["run", "-D", "--use", tag, "--", "echo", "given"]);
    expect(given).toMatchObject({ stdout: "given\n" });
  });

  test("bough run without a command uses the session's image and options; its exit code and history are as usual", async () => {
    await build(
      'FROM own:docker\nENTRYPOINT ["sh", "-c", "id -u; echo $A; exit $A"]\n',
      "--docker",
      "--tag",
      "ends:1",
    );
    await bough(["-S", "e", "use", "ends:1"]);
    const run = await bough(["-S", "e", "run", "-e", "A=4", "-u", "root"]);
    expect(run).toMatchObject({ stdout: "0\n4\n", exitCode: 4 });
    await build(
      'FROM own:docker\nUSER root\nENTRYPOINT ["touch"]\nCMD ["/a b"]\n',
      "--docker",
      "--tag",
      "makes:1",
    );
    await bough(["-S", "m", "use", "makes:1"]);
    await bough(["-S", "m", "run"]);
    expect((await bough(["-S", "m", "session", "show"])).stdout).toContain("touch '/a b'");
  });

  test.each<[string, string[], string]>([
    ["neither ENTRYPOINT nor CMD", ["--use", "neither:1"], "The image has neither ENTRYPOINT nor CMD: "],
    ["an empty first word", ["--use", "empty:1"], "The image's own command begins with an empty word."],
    ["--no-config", ["--use", "empty:1", "--no-config"], "--no-config ignores the image's own."],
    ["--shell", ["--use", "empty:1", "-s"], "--shell needs one."],
  ])("bough run without a command is refused: %s", async (_, options, expected) => {
    await build('FROM own:docker\nCMD [""]\n', "--docker", "--tag", "empty:1");
    await build("FROM own:docker\nENTRYPOINT []\n", "--docker", "--tag", "neither:1");
    const { exitCode, stderr } = await bough(["run", "-D", ...options]);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 2 });
    expect(stderr).toContain(`bough run: no command given. ${expected}`);
  });

  test("bough run refuses a user that the image does not have", async () => {
    const { exitCode, stderr } = await bough(["run", "-D", "--use", "own:docker", "-u", "eve", "--", "true"]);
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain("the image has no user eve");
  });

  test("a session's commands have the settings, in the image and in their results", async () => {
    await bough(["-S", "s", "use", "own:docker"]);
    await bough(["-S", "s", "run", "-u", "root", "--", "touch", "/made"]);
    const { stdout } = await bough(["-S", "s", "run", "-D", "-s", "--", `ls /made; ${printSettings}`]);
    expect(stdout).toBe("/made\n1|two words||/srv/w|7:7|/home/bob\n");
  });

  test.each(["--no-docker", "--docker"])(
    "a build that starts from the image keeps its settings (%s)",
    async (mode) => {
      const context = contextOf(
        `FROM own:docker\nENV C=$A\nWORKDIR x\nUSER root\nRUN ${printSettings}; echo $C\n`,
      );
      const { stderr } = await bough(["build", ".", mode, "--progress", "plain"], context);
      expect(stderr).toContain("1|two words||/srv/w/x|0:0|/root\n1\n");
    },
  );

  test.each(["--no-docker", "--docker"])("--failed-step has the settings of the step (%s)", async (mode) => {
    const context = contextOf(`${own}ENV C=3\nWORKDIR /tmp\nRUN false\nENV D=4\n`);
    const { stderr } = await bough(["build", ".", mode, "--progress", "plain"], context);
    const [, session = ""] = /-S (\S+) run -D --failed-step --/.exec(stderr) ?? [];
    const { stdout } = await bough([
      "-S",
      session,
      "run",
      "-D",
      "--failed-step",
      "-s",
      "--",
      `${printSettings}; echo $C$D`,
    ]);
    // The build arguments, too.
    expect(stdout).toBe("1|two words|secret|/tmp|7:7|/home/bob\n3\n");
  });
});

describe("on a service that does not store settings in images", () => {
  let service: FakeService;
  let environment: Record<string, string>;
  beforeEach(async () => {
    service = await startFakeService({ run: ({ command }) => ({ exitCode: command === "exit 3" ? 3 : 0 }) });
    service.state.addImage("base:1");
    environment = { BOUGH_HOME: temporaryDirectory() };
  });
  afterEach(() => service.close());

  const bough = (words: readonly string[], workingDirectory = "/") =>
    runBough(["--url", service.url, "--token", "t0ken-t0ken", ...words], { workingDirectory, environment });
  const build = (dockerfile: string, ...options: string[]) =>
    bough(["build", "-q", ".", ...options], contextOf(dockerfile));
  const lastRequest = () => service.requestsTo("POST /v1/instances").at(-1)?.json as InstanceBody | undefined;
  const numbered = own.replace("USER bob", "USER 7:8");

  test.each(["--no-docker", "--docker"])("bough stores them for each image (%s)", async (mode) => {
    expect((await build(numbered, mode, "--tag", "own")).exitCode).toBe(0);
    expect((await bough(["run", "-D", "--use", "own", "-e", "A=3", "--", "ls"])).exitCode).toBe(0);
    const surroundings = { cwd: "/srv/w", uid: 7, gid: 8 };
    expect(lastRequest()).toMatchObject({ ...surroundings, env: { A: "3", B: "two words" } });
    expect(lastRequest()?.env).not.toHaveProperty("S");
    expect((await build("FROM own\nRUN true\n", mode)).exitCode).toBe(0);
    expect(lastRequest()).toMatchObject({ ...surroundings, env: { A: "1", B: "two words" } });
    await bough(["run", "-D", "--use", "own", "--no-config", "--", "ls"]);
    expect(lastRequest()).toMatchObject({ cwd: "/", env: {} });
    expect(lastRequest()).not.toHaveProperty("uid");
  });

  test.each([[[]], [["-d"]]])("bough stores the command, too (run %p)", async (detach) => {
    await build(`${numbered}ENTRYPOINT ["app", "-v"]\nCMD ["x y"]\n`, "--docker", "--tag", "own");
    expect((await bough(["run", "-D", ...detach, "--use", "own"])).exitCode).toBe(0);
    expect(lastRequest()).toMatchObject({ command: "app", args: ["-v", "x y"], shell: false, uid: 7 });
    const { exitCode, stderr } = await bough(["run", "-D", ...detach, "--use", "base:1"]);
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 2 });
    expect(stderr).toContain("has neither ENTRYPOINT nor CMD");
  });

  test("bough stores nothing for the base image", async () => {
    expect((await build("FROM base:1\nENV A=1\nWORKDIR /w\n")).exitCode).toBe(0);
    await bough(["run", "-D", "--use", "base:1", "--", "ls"]);
    expect(lastRequest()).toMatchObject({ cwd: "/", env: {} });
  });

  test("a failed step does not change the settings of the image that it started from", async () => {
    const context = contextOf(numbered);
    await bough(["build", "-q", ".", "--tag", "own"], context);
    writeFiles(context, { Dockerfile: `${numbered}ENV A=9\nRUN exit 3\n` });
    await bough(["build", "-q", "."], context);
    await bough(["run", "-D", "--use", "own", "--", "ls"]);
    expect(lastRequest()).toMatchObject({ env: { A: "1" } });
  });
});
