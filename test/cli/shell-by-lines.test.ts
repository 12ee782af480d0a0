/** `bough shell` and `run -it` on services without terminals. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import type { Interrupt } from "../../src/cli/process/interrupts.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { TestEngine } from "../support/engine.ts";

setDefaultTimeout(60_000);

let engine: TestEngine;
let fake: FakeService;
let cancelling: FakeService;
beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.importBase("base:1");
  fake = await startFakeService({
    sixCallsOnly: true,
    run: ({ command }) => {
      if (command === "cd /srv && pwd") return { stdout: "/srv\n" };
      return { stdout: `ran ${command}\n`, exitCode: /^fails$|1 \+ 2/.test(command) ? 3 : 0 };
    },
  });
  cancelling = await startFakeService({
    run({ command }) {
      if (command === "hangs") return { until: new Promise<void>(() => {}) };
      return command === "sh" ? {} : { stdout: `ran ${command}\n` };
    },
  });
  for (const service of [fake, cancelling]) service.state.addImage("base:1");
});
afterAll(() => Promise.all([engine.close(), fake.close(), cancelling.close()]));

/** Types lines, each after a short time for the response to the previous one; `ctrlC` presses Ctrl-C. */
async function* type(lines: readonly string[], interrupts: Set<Interrupt>): AsyncGenerator<Uint8Array> {
  let pressed: Promise<void> | undefined;
  for (const [index, line] of lines.entries()) {
    await pressed;
    // By then the previous line's command has started. No more lines may be read until it ends.
    const press = async () => {
      await Bun.sleep(500);
      expect(await [...interrupts].at(-1)?.()).toBe(true);
    };
    pressed = lines[index + 1] === ctrlC ? press() : undefined;
    if (line !== ctrlC) yield Buffer.from(`${line}\n`);
    await Bun.sleep(20);
  }
}

/** Stands for Ctrl-C among the typed lines. */
const ctrlC = "\u0003";

const home = temporaryDirectory();
const bough = (words: readonly string[], typed: readonly string[], url: string, fetch?: typeof handle) => {
  const interrupts = new Set<Interrupt>();
  return runBough(words, {
    interrupts,
    workingDirectory: home,
    environment: { BOUGH_HOME: join(home, "state"), CONTREE_URL: url, CONTREE_TOKEN: "t0ken-t0ken" },
    stdin: type(typed, interrupts),
    hasInputTerminal: true,
    terminalColumns: 80,
    ...(fetch === undefined ? {} : { fetch }),
  });
};

/** The engine as a service with the API's document only, without extensions. */
async function handle(input: string | Request, init?: RequestInit): Promise<Response> {
  const request = input instanceof Request ? input : new Request(input, init);
  const response = await engine.engine.fetch(request);
  if (!request.url.endsWith("/v1/whoami")) return response;
  return Response.json({ ...((await response.json()) as object), extensions: [] });
}

const serviceUrl = "http://service.test";
const subprocesses = (words: readonly string[], typed: readonly string[]) =>
  bough(words, typed, serviceUrl, handle);

test("a shell reads lines through the subprocess API, keeps its directory and variables, and sets bough's exit code", async () => {
  const typed = ["cd /tmp; X=kept", "echo $X > file; pwd; cat file", "exit 4"];
  const ended = await subprocesses(["-S", "a", "shell", "base:1", "--keep"], typed);
  expect(ended.exitCode).toBe(4);
  expect(ended.stdout).toContain("/tmp\nkept\n");
  expect(ended.stderr).toContain("does not support terminals: what you type is sent line by line");
  const kept = await bough(["-S", "a", "cat", "/tmp/file"], [], serviceUrl, handle);
  expect(kept.stdout).toBe("kept\n");
});

test("Ctrl-C ends the running command, but no background jobs, and the shell continues", async () => {
  const typed = ["X=1; sleep 6790 &", "sleep 6789", ctrlC, ctrlC, "while :; do :; done", ctrlC];
  const look = "echo X=$X; ps | grep -c 'sleep 678[9]'; ps | grep -c 'sleep 679[0]'; exit 4";
  const ended = await subprocesses(["shell", "base:1", "-u", "1000"], [...typed, look]);
  expect(ended.stdout).toEndWith(" X=1\n0\n1\n");
  expect(ended.exitCode).toBe(4);
  expect(ended.stderr).toContain("Ctrl-C ends the running command, Ctrl-D the shell");
  expect(ended.stderr).not.toContain("\u0001");
});

test("the end of standard input is the end of the command's input", async () => {
  const ended = await subprocesses(["run", "-it", "-D", "base:1", "cat"], ["one", "two"]);
  expect(ended).toMatchObject({ exitCode: 0, stdout: "one\ntwo\n" });
});

test("without subprocesses each line is a separate command on the result of the previous one", async () => {
  fake.clearRequests();
  const typed = ["one", "cd /srv", "two | three", "", "fails", "exit"];
  const ended = await bough(["-S", "b", "shell", "base:1", "--keep"], typed, fake.url);
  expect(ended.stdout).toBe("ran one\nran two | three\nran fails\n");
  expect(ended.exitCode).toBe(3);
  expect(ended.stderr).toContain("each line is a separate command");
  expect(ended.stderr).toContain("/srv$ ");
  const [, ...commands] = fake
    .requestsTo("POST /v1/instances")
    .map(({ json }) => json as Record<string, unknown>);
  expect(
    commands.map(({ command, shell, cwd, disposable }) => ({ command, shell, cwd, disposable })),
  ).toEqual([
    { command: "one", shell: true, cwd: "/", disposable: false },
    { command: "cd /srv && pwd", shell: true, cwd: "/", disposable: false },
    { command: "two | three", shell: true, cwd: "/srv", disposable: false },
    { command: "fails", shell: true, cwd: "/srv", disposable: false },
  ]);
  const images = commands.map(({ image }) => image);
  expect(new Set(images).size).toBe(4);
  const history = await bough(["-f", "json", "session", "show", "b"], [], fake.url);
  expect(JSON.parse(history.stdout).history.map(({ kind }: { kind: string }) => kind)).toEqual([
    "use",
    "run",
  ]);
});

test("without subprocesses Ctrl-C cancels the line's operation, and does nothing at the prompt", async () => {
  cancelling.clearRequests();
  const typed = ["one", "hangs", ctrlC, ctrlC, "two", "exit"];
  const ended = await bough(["shell", "base:1"], typed, cancelling.url);
  expect(ended).toMatchObject({ exitCode: 0, stdout: "ran one\nran two\n" });
  const [, one, hangs, two] = cancelling
    .requestsTo("POST /v1/instances")
    .map(({ json }) => (json as { image: string }).image);
  expect(hangs).not.toBe(one);
  expect(two).toBe(hangs ?? "");
  const last = await bough(["shell", "base:1"], ["hangs", ctrlC, "exit"], cancelling.url);
  expect(last.exitCode).toBe(130);
});

test("without subprocesses `exit N` sets the exit code, and no input means 0", async () => {
  expect((await bough(["shell", "base:1"], ["exit 9"], fake.url)).exitCode).toBe(9);
  const computed = await bough(["shell", "base:1"], ["exit-status", "exit $((1 + 2))", "one"], fake.url);
  expect(computed).toMatchObject({ exitCode: 3, stdout: "ran exit-status\nran exit $((1 + 2))\n" });
  expect((await bough(["shell", "base:1"], [], fake.url)).exitCode).toBe(0);
});

test("a command that ends before its input is sent succeeds", async () => {
  const ended = await bough(["run", "-it", "-D", "base:1", "true"], [], cancelling.url);
  expect(ended).toMatchObject({ exitCode: 0, stdout: "ran true\n" });
});

test("a command with input is refused if the service cannot send it", async () => {
  const ended = await bough(["run", "-it", "-D", "base:1", "cat"], ["one"], fake.url);
  expect(ended.exitCode).toBe(1);
  expect(ended.stderr).toContain("does not support input to a running command\nPipe it in");
});
