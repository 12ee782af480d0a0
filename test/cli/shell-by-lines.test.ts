/** `bough shell` and `run -it` on services that give commands no terminal. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { TestEngine } from "../support/engine.ts";

setDefaultTimeout(60_000);

let engine: TestEngine;
let fake: FakeService;
beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.importBase("base:1");
  fake = await startFakeService({
    sixCallsOnly: true,
    run: ({ command }) => {
      if (command === "cd /srv && pwd") return { stdout: "/srv\n" };
      return { stdout: `ran ${command}\n`, exitCode: command === "fails" ? 3 : 0 };
    },
  });
  fake.state.addImage("base:1");
});
afterAll(() => Promise.all([engine.close(), fake.close()]));

/** Each line when the one before has been answered, as far as one can tell. */
async function* type(lines: readonly string[]): AsyncGenerator<Uint8Array> {
  for (const line of lines) {
    yield Buffer.from(`${line}\n`);
    await Bun.sleep(20);
  }
}

const home = temporaryDirectory();
const bough = (words: readonly string[], typed: readonly string[], url: string, fetch?: typeof handle) =>
  runBough(words, {
    workingDirectory: home,
    environment: { BOUGH_HOME: join(home, "state"), CONTREE_URL: url, CONTREE_TOKEN: "t0ken-t0ken" },
    stdin: type(typed),
    hasInputTerminal: true,
    terminalColumns: 80,
    ...(fetch === undefined ? {} : { fetch }),
  });

/** The engine as a service that knows the API's document and no extension. */
async function handle(input: string | Request, init?: RequestInit): Promise<Response> {
  const request = input instanceof Request ? input : new Request(input, init);
  const response = await engine.engine.fetch(request);
  if (!request.url.endsWith("/v1/whoami")) return response;
  return Response.json({ ...((await response.json()) as object), extensions: [] });
}

const over = "http://service.test";
const subprocesses = (words: readonly string[], typed: readonly string[]) =>
  bough(words, typed, over, handle);

test("a shell reads lines by the subprocess API: its directory and variables last, and its exit code is bough's", async () => {
  const typed = ["cd /tmp; X=kept", "echo $X > file; pwd; cat file", "exit 4"];
  const ended = await subprocesses(["-S", "a", "shell", "base:1", "--keep"], typed);
  expect(ended.exitCode).toBe(4);
  expect(ended.stdout).toContain("/tmp\nkept\n");
  expect(ended.stderr).toContain("gives commands no terminal: what you type goes there line by line");
  const kept = await bough(["-S", "a", "cat", "/tmp/file"], [], over, handle);
  expect(kept.stdout).toBe("kept\n");
});

test("the end of what is typed is the end of the command's input", async () => {
  const ended = await subprocesses(["run", "-it", "-D", "base:1", "cat"], ["one", "two"]);
  expect(ended).toMatchObject({ exitCode: 0, stdout: "one\ntwo\n" });
});

test("without such calls each line is a command of its own, on what the one before has left", async () => {
  fake.clearRequests();
  const typed = ["one", "cd /srv", "two | three", "", "fails", "exit"];
  const ended = await bough(["-S", "b", "shell", "base:1", "--keep"], typed, fake.url);
  expect(ended.stdout).toBe("ran one\nran two | three\nran fails\n");
  expect(ended.exitCode).toBe(3);
  expect(ended.stderr).toContain("each line is a command of its own");
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

test("`exit N`, and nothing that is typed", async () => {
  expect((await bough(["shell", "base:1"], ["exit 9"], fake.url)).exitCode).toBe(9);
  expect((await bough(["shell", "base:1"], [], fake.url)).exitCode).toBe(0);
});

test("any other command can't do without its input", async () => {
  const ended = await bough(["run", "-it", "-D", "base:1", "cat"], ["one"], fake.url);
  expect(ended.exitCode).toBe(1);
  expect(ended.stderr).toContain("takes no input while a command runs\nPipe it in");
});
