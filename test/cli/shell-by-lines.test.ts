/** `bough shell` and `run -it` on services without terminals. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import type { Interrupt } from "../../src/cli/process/interrupts.ts";
import type { InstanceResult } from "../../src/service/wire/operation.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { TestEngine } from "../support/engine.ts";
import { untilRuns } from "../support/processes.ts";

setDefaultTimeout(180_000);

let engine: TestEngine;
let fake: FakeService;
let cancelling: FakeService;
beforeAll(async () => {
  engine = await TestEngine.open();
  await engine.importBase("base:1");
  fake = await startFakeService({
    sixCallsOnly: true,
    run: ({ command }) => ({ stdout: `ran ${command}\n` }),
  });
  cancelling = await startFakeService({
    run: ({ command }) => (command === "sh" ? {} : { stdout: `ran ${command}\n` }),
  });
  for (const service of [fake, cancelling]) service.state.addImage("base:1");
});
afterAll(() => Promise.all([engine.close(), fake.close(), cancelling.close()]));

/** Types lines, each after a short time for the response to the previous one; `ctrlC` presses Ctrl-C. */
async function* type(lines: readonly string[], interrupts: Set<Interrupt>): AsyncGenerator<Uint8Array> {
  let pressed: Promise<void> | undefined;
  for (const [index, line] of lines.entries()) {
    await pressed;
    // No more lines may be read until the command ends.
    const press = async () => {
      const [slept] = line.match(/sleep \d+/) ?? [];
      if (slept !== undefined) await untilRuns(slept);
      expect(await [...interrupts].at(-1)?.()).toBe(true);
      await untilDelivered();
    };
    pressed = lines[index + 1] === ctrlC ? press() : undefined;
    if (line !== ctrlC) yield Buffer.from(`${line}\n`);
    await Bun.sleep(20);
  }
}

/** The process beside a command that the client started last. One of them takes each Ctrl-C to the shell. */
let beside = "";

async function untilDelivered(): Promise<void> {
  for (;;) {
    const { state } = await engine.json<InstanceResult>("GET", beside);
    if (state?.exit_code !== -1 || state.signal !== -1) return;
    await Bun.sleep(5);
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
  if (request.url.endsWith("/subprocesses")) {
    const { spid } = (await response.clone().json()) as { spid: number };
    beside = `${new URL(request.url).pathname}/${spid}`;
  }
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
  const typed = ["X=1; sleep 6790 &", "sleep 6789", ctrlC, ctrlC, "sleep 6791 & while :; do :; done", ctrlC];
  const look = "echo X=$X; ps | grep -c 'sleep 678[9]'; ps | grep -c 'sleep 679[0]'; exit 4";
  const ended = await subprocesses(["shell", "base:1", "-u", "1000"], [...typed, look]);
  // Some shells print a prompt before.
  expect(ended.stdout).toMatch(/(^|\s)X=1\n0\n1\n$/);
  expect(ended.exitCode).toBe(4);
  expect(ended.stderr).toContain("Ctrl-C ends the running command, Ctrl-D the shell");
  expect(ended.stderr).not.toContain("\u0001");
});

test("the end of standard input is the end of the command's input", async () => {
  const ended = await subprocesses(["run", "-it", "-D", "base:1", "cat"], ["one", "two"]);
  expect(ended).toMatchObject({ exitCode: 0, stdout: "one\ntwo\n" });
});

test("a shell is refused without subprocesses, with what to do instead", async () => {
  const ended = await bough(["shell", "base:1"], ["one"], fake.url);
  expect(ended.exitCode).toBe(1);
  expect(ended.stdout).toBe("");
  expect(ended.stderr).toContain("does not support input to a running command\nGive commands to `bough run`");
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
