/** `--failed-step`: what a command has if it runs in the place of a failed step. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";

setDefaultTimeout(180_000);

const home = temporaryDirectory();
const state = join(home, "state");
const local = { BOUGH_HOME: state };
let service: FakeService;
beforeAll(async () => {
  service = await startFakeService({
    sixCallsOnly: true,
    run: (request) => ({ exitCode: JSON.stringify(request).includes("broken") ? 1 : 0 }),
  });
  const layout = await makeBusyboxLayout(join(home, "layout"));
  await bough(["--local", "images", "import", layout, "--tag", "base:1"]);
});
afterAll(() => service.close());

const bough = (words: readonly string[], environment: Record<string, string> = local) =>
  runBough(words, { workingDirectory: home, environment });

function writeContext(name: string, dockerfile: string): string {
  const context = join(home, name);
  mkdirSync(context, { recursive: true });
  writeFileSync(join(context, "Dockerfile"), dockerfile);
  writeFileSync(join(context, "a.txt"), "staged\n");
  return context;
}

/** The commands that a failed build suggests, as words after `bough`. */
function suggestedCommands(stderr: string): string[][] {
  return stderr.split("\n").flatMap((line) => {
    const words = line.trim().split(" ");
    return line.startsWith("  bough ") ? [words.slice(1).filter((word) => word !== "COMMAND")] : [];
  });
}

const dockerfile = (last: string) => `FROM base:1
ARG VERSION=1.2
ENV MODE=fast DEPLOY_TOKEN=hunter2-hunter2
RUN echo before > /before
WORKDIR /srv/app
COPY a.txt sub/
USER 1000:1001
RUN ${last}
`;

test.each([
  [[], "false"],
  [["--docker"], "false"],
  [["--docker"], "--mount=type=tmpfs,target=/mounted --network=none false"],
])("%j RUN %s: files, directory, user, variables and mounts are those of the step", async (flags, last) => {
  const context = writeContext("engine", dockerfile(last));
  const failed = await bough(["--local", "build", context, ...flags]);
  expect(failed.exitCode).toBe(1);
  expect(failed.stderr).toContain(
    "To open the failed step, as its command found it (without DEPLOY_TOKEN):\n",
  );
  const [shell, run = []] = suggestedCommands(failed.stderr);
  expect(shell?.slice(-2)).toEqual(["shell", "--failed-step"]);
  const seen = "id -u; id -g; pwd; cat sub/a.txt /before; echo $MODE $VERSION ${DEPLOY_TOKEN-none}";
  const look = "grep -c ' /mounted ' /proc/mounts; ls /sys/class/net";
  const { stdout } = await bough([...run, "sh", "-c", `${seen}; ${look}`]);
  const [mounted, network] = last === "false" ? [0, "lo\ntap0"] : [1, "lo"];
  expect(stdout).toBe(`1000\n1001\n/srv/app\nstaged\nbefore\nfast 1.2 none\n${mounted}\n${network}\n`);
});

test("options override the step's settings, and a result that is kept goes to a new branch", async () => {
  const context = writeContext("kept", dockerfile("false"));
  const failed = await bough(["--local", "build", context]);
  const [[, , session = ""] = []] = suggestedCommands(failed.stderr);
  const run = ["--local", "-S", session, "run", "--failed-step"];
  const other = ["-e", "MODE=slow", "-C", "/", "-u", "0", "-F", "kept/a.txt:/own", "--"];
  const { stdout } = await bough([...run, "-D", ...other, "sh", "-c", "id -u; pwd; echo $MODE; cat own"]);
  expect(stdout).toBe("0\n/\nslow\nstaged\n");
  const kept = await bough([...run, "-u", "0", "--", "touch", "sub/new"]);
  expect(kept.stderr).toMatch(/the result is on branch debug:[0-9a-f]{12}/);
  expect((await bough(["--local", "-S", session, "ls", "/srv/app/sub"])).stdout).toContain("new");
});

test("a changed or removed file of the context is as the step had it", async () => {
  const removing = dockerfile("rm sub/b.txt; false").replace("USER 1000:1001\n", "");
  const context = writeContext("changed", removing.replace("a.txt", "a.txt b.txt"));
  writeFileSync(join(context, "b.txt"), "removed by the command\n");
  const failed = await bough(["--local", "build", "--docker", context]);
  const [, run = []] = suggestedCommands(failed.stderr);
  writeFileSync(join(context, "a.txt"), "changed\n");
  expect(await bough([...run, "cat", "sub/a.txt", "sub/b.txt"])).toMatchObject({
    exitCode: 0,
    stdout: "staged\nremoved by the command\n",
  });
  rmSync(join(context, "a.txt"));
  rmSync(join(context, "b.txt"));
  expect((await bough([...run, "cat", "sub/a.txt"])).stdout).toBe("staged\n");
});

test("a mount of the context has the files that it has now, with a warning if they have changed", async () => {
  const context = writeContext(
    "mounted",
    dockerfile("--mount=type=bind,target=/context cat /context/a.txt; false"),
  );
  const failed = await bough(["--local", "build", "--docker", context]);
  expect(failed.stderr).not.toContain("uploaded");
  const [, run = []] = suggestedCommands(failed.stderr);
  expect(await bough([...run, "cat", "/context/a.txt"])).toMatchObject({ exitCode: 0, stdout: "staged\n" });
  writeFileSync(join(context, "a.txt"), "changed\n");
  const now = await bough([...run, "cat", "/context/a.txt"]);
  expect(now).toMatchObject({ exitCode: 0, stdout: "changed\n" });
  expect(now.stderr).toContain(
    `changed since the step failed, and mounted as they are now: ${join(context, "a.txt")}`,
  );
});

test("no secret of the step is in a file, and a successful build forgets the step", async () => {
  const context = writeContext("secret", dockerfile("--mount=type=secret,id=key,env=KEY echo run && false"));
  writeFileSync(join(home, "key"), "s3cret-of-the-mount");
  const failed = await bough([
    "--local",
    "build",
    "--docker",
    context,
    "--secret",
    `id=key,src=${join(home, "key")}`,
  ]);
  expect(failed.stderr).toContain("(without DEPLOY_TOKEN, what --secret and --ssh provide):\n");
  const databases = readdirSync(join(state, "sessions")).map((name) =>
    readFileSync(join(state, "sessions", name), "latin1"),
  );
  const [[, , session = ""] = []] = suggestedCommands(failed.stderr);
  const { createFailedStepStore } = await import("../../src/store/branches.ts");
  const { Database } = await import("bun:sqlite");
  const database = new Database(join(state, "sessions/embedded.db"), { readonly: true });
  const kept = createFailedStepStore(database).get(session) ?? "";
  database.close();
  expect(kept).toContain('"MODE":"fast"');
  for (const text of [kept, ...databases]) expect(text).not.toMatch(/hunter2|s3cret-of-the-mount|czNjcmV0/);

  writeContext("secret", dockerfile("true"));
  expect((await bough(["--local", "build", "--docker", context])).exitCode).toBe(0);
  const over = await bough(["--local", "-S", session, "run", "--failed-step", "--", "true"]);
  expect(over).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining(`the latest build of session ${session} has not failed at a step`),
  });
});

test("without the session's key, the hint names the session whose build has failed", async () => {
  const failed = await bough([
    "--local",
    "build",
    "--docker",
    writeContext("forgotten", dockerfile("broken")),
  ]);
  const [[, , session = ""] = []] = suggestedCommands(failed.stderr);
  const { stderr } = await bough(["--local", "run", "--failed-step", "--", "ls"]);
  expect(stderr).toContain(`\n\`bough -S ${session} shell --failed-step\` opens the step`);
});

test("works on a service with only the specification's calls", async () => {
  const environment = {
    BOUGH_HOME: join(home, "remote"),
    CONTREE_URL: service.url,
    CONTREE_TOKEN: "t0ken-t0ken",
  };
  service.state.addImage("base:1");
  const context = writeContext("remote", dockerfile("broken"));
  const failed = await bough(["build", context], environment);
  const [, run = []] = suggestedCommands(failed.stderr);
  const { exitCode } = await bough([...run, "ls", "-l"], environment);
  expect(exitCode).toBe(0);
  expect(service.requestsTo("POST /v1/instances").at(-1)?.json).toMatchObject({
    ...{ command: "ls", args: ["-l"], cwd: "/srv/app", uid: 1000, gid: 1001 },
    env: { MODE: "fast", VERSION: "1.2" },
    files: { "/srv/app/sub/a.txt": { uuid: expect.any(String), mode: "0644" } },
  });
});

test.each([
  [["run", "--failed-step"], "no command given. --failed-step needs one"],
  [
    ["run", "--failed-step", "base:1", "ls"],
    "--failed-step runs in that step's image: no other image can be given",
  ],
  [
    ["-S", "none", "run", "--failed-step", "--", "ls"],
    "the latest build of session none has not failed at a step",
  ],
])("%j", async (words, message) => {
  const ended = await bough(["--local", ...words]);
  expect(ended).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(message) });
});
