/** `bough run` as a process: signals, broken pipes, standard input that ends or does not, output while the command runs. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import type { FakeServiceOptions } from "../fake-service/options.ts";
import type { RunOutcome } from "../fake-service/state.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";

setDefaultTimeout(180_000);

const main = join(import.meta.dir, "../../src/main.ts");
const never = new Promise(() => {});
let service: FakeService;
let environment: Record<string, string>;
beforeEach(() => {
  environment = {
    PATH: process.env.PATH ?? "",
    HOME: temporaryDirectory(),
    BOUGH_HOME: temporaryDirectory(),
  };
});
afterEach(() => service.close());

async function serve(outcome: RunOutcome, options: FakeServiceOptions = {}): Promise<void> {
  service = await startFakeService({ run: () => outcome, ...options });
  environment.CONTREE_URL = service.url;
  environment.CONTREE_TOKEN = "t0ken-t0ken";
  service.state.addImage("base:1");
  const used = await runBough(["use", "base:1"], { workingDirectory: "/", environment });
  expect(used.exitCode).toBe(0);
}

type Input = "ignore" | "pipe" | Blob;

function start(words: readonly string[], stdin: Input = "ignore") {
  const command = [compileBough(), ...words];
  return Bun.spawn(command, { env: environment, stdin, stdout: "pipe", stderr: "pipe" });
}

const lastOperation = () => [...service.state.operations.values()].at(-1)?.record;

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(5);
}

describe("a signal", () => {
  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
    "%s cancels the operation, moves no branch, and ends with 130",
    async (signal) => {
      await serve({ until: never });
      const child = start(["run", "--", "sleep", "1000"]);
      await until(() => service.requestsTo(/events$/).length > 0);
      child.kill(signal);
      expect(await child.exited).toBe(130);
      const operation = lastOperation();
      expect(operation?.status).toBe("CANCELLED");
      expect(await new Response(child.stderr).text()).toContain(`operation ${operation?.uuid} is cancelled`);
      const shown = await runBough(["session", "show", "-f", "json"], { workingDirectory: "/", environment });
      expect(JSON.parse(shown.stdout).history).toHaveLength(1);
    },
  );

  test("has no effect if it is a SIGHUP that nohup ignores", async () => {
    const { promise: end, resolve: finish } = Promise.withResolvers<void>();
    await serve({ until: end });
    const command = `trap "" HUP; exec '${compileBough()}' run -D -- sleep 1000`;
    const child = Bun.spawn(["sh", "-c", command], { env: environment, stdin: "ignore", stderr: "ignore" });
    await until(() => service.requestsTo(/events$/).length > 0);
    child.kill("SIGHUP");
    finish();
    expect(await child.exited).toBe(0);
    expect(lastOperation()?.status).toBe("SUCCESS");
  });

  test("does not cancel an operation whose logs are followed", async () => {
    await serve({ chunks: [{ stream: "stdout", data: "begun\n" }], until: never });
    const detached = await runBough(["-q", "run", "-d", "--", "x"], { workingDirectory: "/", environment });
    const child = start(["logs", "--follow", detached.stdout.trim()]);
    const { value } = await child.stdout.getReader().read();
    expect(new TextDecoder().decode(value)).toBe("begun\n");
    child.kill("SIGINT");
    expect(await child.exited).toBe(130);
    expect(lastOperation()?.status).toBe("EXECUTING");
  });

  test("ends bough before it starts a command if standard input has not ended", async () => {
    await serve({});
    const command = [compileBough(), "run", "--", "cat"];
    const child = Bun.spawn(command, { env: environment, stdin: "pipe", stdout: "ignore", stderr: "ignore" });
    // More than a pipe's buffer: if the write succeeds, bough reads.
    child.stdin.write(new Uint8Array(1 << 20));
    await child.stdin.flush();
    child.kill("SIGINT");
    expect(await child.exited).toBe(130);
    expect(service.state.operations.size).toBe(0);
  });
});

describe("an uncaught error", () => {
  const thrown = 'throw new Error("of its own making");';
  const rejected = 'void Promise.reject(new Error("of its own making"));';
  const message = (operation: string | undefined) =>
    `bough itself failed: of its own making; operation ${operation} may still run`;
  const hint = [
    "This is a bug in bough: please report it with the command line and the output of -L debug.",
    "`bough ps` shows what runs, `bough kill OPERATION` ends it.",
  ].join("\n");

  /** Runs `script` inside of bough while a command runs, and returns standard error and the exit code. */
  async function failWith(script: string, ...words: string[]) {
    await serve({ until: never });
    const preload = join(temporaryDirectory(), "fail.ts");
    await Bun.write(preload, `process.on("SIGUSR2", () => { ${script} });`);
    const command = [process.execPath, "--preload", preload, main, ...words, "run", "--", "sleep", "1000"];
    const child = Bun.spawn(command, { env: environment, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    await until(() => service.requestsTo(/events$/).length > 0);
    child.kill("SIGUSR2");
    return { stderr: await new Response(child.stderr).text(), exitCode: await child.exited };
  }

  test.each([
    ["thrown", thrown],
    ["rejected", rejected],
  ])(
    "that is %s is reported as a failure of bough, with the operation that may still run",
    async (_, script) => {
      expect(await failWith(script, "-L", "error")).toEqual({
        stderr: `[ERROR] ${message(lastOperation()?.uuid)}\n${hint}\n`,
        exitCode: 1,
      });
    },
  );

  test("is JSON with -f json", async () => {
    const { stderr } = await failWith(thrown, "-L", "error", "-f", "json");
    expect(JSON.parse(stderr)).toEqual({
      error: { code: "failed", message: message(lastOperation()?.uuid), hint },
    });
  });
});

test("results that can't be written are an error that says why", async () => {
  const command = `'${compileBough()}' -h > /dev/full`;
  const child = Bun.spawn(["sh", "-c", command], { env: environment, stdin: "ignore", stderr: "pipe" });
  expect(await new Response(child.stderr).text()).toBe(
    "[ERROR] cannot write to standard output: no space is left on the disk\n",
  );
  expect(await child.exited).toBe(1);
});

describe("a reader that stops", () => {
  test("ends bough silently, and cancels the operation", async () => {
    const chunks = Array.from({ length: 2000 }, (_, index) => ({
      stream: "stdout" as const,
      data: `line ${index}\n`.repeat(100),
      ...(index > 100 ? { delayMs: 5 } : {}),
    }));
    await serve({ chunks, until: never });
    const command = `'${compileBough()}' run -D -- yes | head -1`;
    const child = Bun.spawn(["bash", "-c", `${command}; echo "\${PIPESTATUS[0]}"`], {
      env: environment,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    expect(await new Response(child.stdout).text()).toBe("line 0\n0\n");
    expect(await new Response(child.stderr).text()).toBe("");
    expect(lastOperation()?.status).toBe("CANCELLED");
  });

  test("causes no error of a list", async () => {
    await serve({});
    for (let count = 0; count < 3000; count++) service.state.addImage();
    const command = `'${compileBough()}' images -q | head -1`;
    const child = Bun.spawn(["sh", "-c", command], { env: environment, stdout: "pipe", stderr: "pipe" });
    expect((await new Response(child.stdout).text()).split("\n")).toHaveLength(2);
    expect(await new Response(child.stderr).text()).toBe("");
  });
});

describe("standard input", () => {
  test.each([
    ["that is closed", "<&-"],
    ["from /dev/null", "</dev/null"],
    ["that is empty", "< /dev/null cat |"],
  ])("%s is not sent and not waited for", async (_, redirection) => {
    await serve({ stdout: "done\n" });
    const bough = `'${compileBough()}' run -D -- cat`;
    const line = redirection.endsWith("|") ? `${redirection} ${bough}` : `${bough} ${redirection}`;
    const child = Bun.spawn(["sh", "-c", line], { env: environment, stdout: "pipe", stderr: "pipe" });
    expect(await new Response(child.stdout).text()).toBe("done\n");
    expect(service.state.instances[0]?.stdin).toBeUndefined();
  });

  test("arrives byte for byte", async () => {
    await serve({});
    const bytes = new Uint8Array(1_000_000).map((_, index) => (index * 7) % 256);
    const child = start(["run", "-D", "--", "cat"], new Blob([bytes]));
    expect(await child.exited).toBe(0);
    const sent = service.state.instances[0]?.stdin;
    expect(Buffer.from(sent?.value ?? "", "base64").equals(bytes)).toBe(true);
  });

  test("that does not end causes a message about the wait", async () => {
    await serve({ stdout: "done\n" });
    const child = start(["run", "-D", "--", "cat"], "pipe");
    const { value } = await child.stderr.getReader().read();
    expect(new TextDecoder().decode(value)).toContain("reading standard input until it ends; use </dev/null");
    if (typeof child.stdin === "object") child.stdin.end();
    expect(await new Response(child.stdout).text()).toBe("done\n");
  });
});

describe("output", () => {
  test("is passed on unchanged while the command runs, to standard output and standard error", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const chunks = [
      { stream: "stdout" as const, data: new Uint8Array([0xff, 0x00, 0xc3]) },
      { stream: "stderr" as const, data: "warning\n" },
      { stream: "stdout" as const, data: new Uint8Array([0xa9, 0x0a]) },
    ];
    await serve({ chunks, until: promise, exitCode: 9 });
    const child = start(["run", "-D", "--", "x"]);
    const stdout = child.stdout.getReader();
    const received: number[] = [];
    while (received.length < 5) received.push(...((await stdout.read()).value ?? []));
    expect(received).toEqual([0xff, 0x00, 0xc3, 0xa9, 0x0a]);
    resolve();
    expect(await child.exited).toBe(9);
    expect(await new Response(child.stderr).text()).toBe("warning\n");
  });

  test("of a service with six calls is as much as it keeps by itself, and the rest is said to be lost", async () => {
    const bytes = new Uint8Array(100_000).map((_, index) => (index * 31) % 256);
    await serve({ stdout: bytes, stderr: "e\n" }, { sixCallsOnly: true });
    const child = start(["run", "-D", "--", "x"]);
    const shown = Buffer.from(await new Response(child.stdout).arrayBuffer());
    expect(shown.equals(bytes.subarray(0, 65_536))).toBe(true);
    expect(await new Response(child.stderr).text()).toContain("[WARN] stdout was truncated after 66 kB");
    expect(await child.exited).toBe(0);
  });

  test.each([
    ["a service without events", { events: false }],
    ["a service that compresses", { gzip: true }],
  ])("of %s is complete, too", async (_, options) => {
    const bytes = new Uint8Array(100_000).map((_, index) => (index * 31) % 256);
    await serve({ stdout: bytes, stderr: "e\n" }, options);
    const child = start(["run", "-D", "--", "x"]);
    expect(Buffer.from(await new Response(child.stdout).arrayBuffer()).equals(bytes)).toBe(true);
    expect(await new Response(child.stderr).text()).toBe("e\n");
    expect(await child.exited).toBe(0);
  });

  test.each([
    ["text", new TextEncoder().encode("0123456789")],
    ["bytes that are not UTF-8", new Uint8Array([255, 254, 253, 252, 251])],
  ])("that the service has cut off causes a warning: %s", async (_, stdout) => {
    await serve({ stdout, truncateAt: 4 }, { events: false });
    const child = start(["run", "-D", "--", "x"]);
    expect(await new Response(child.stdout).bytes()).toEqual(stdout.subarray(0, 4));
    expect(await new Response(child.stderr).text()).toBe(
      "[WARN] stdout was truncated after 4 B: the rest is missing, including any error at its end. The command can write it to a file instead\n",
    );
  });
});
