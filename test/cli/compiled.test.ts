/** The main paths of the executable that users download. */
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { startFakeService } from "../fake-service/fake-service.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { compileBough } from "../support/compiled.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";

let bough: string;

beforeAll(() => {
  bough = compileBough();
});

function start(words: readonly string[], cwd: string, environment: Record<string, string> = {}) {
  const env = { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...environment };
  return Bun.spawn([bough, ...words], { cwd, env, stdout: "pipe", stderr: "pipe", stdin: "ignore" });
}

async function run(words: readonly string[], cwd: string, environment: Record<string, string> = {}) {
  return endOf(start(words, cwd, environment));
}

test("hashes large files on threads", async () => {
  const fake = await startFakeService({ token: "right-token" });
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: "FROM base:1\nCOPY one two /\nRUN true\n", one: "1", two: "2" });
  for (const name of ["one", "two"]) truncateSync(join(context, name), 70_000_000);
  const words = ["--url", fake.url, "--token", "right-token", "build"];
  expect(await run(words, context, { BOUGH_HOME: temporaryDirectory() })).toMatchObject({ exitCode: 0 });
  for (const name of ["one", "two"]) {
    const content = await Bun.file(join(context, name)).bytes();
    expect(fake.state.files.has(new Bun.CryptoHasher("sha256").update(content).digest("hex"))).toBe(true);
  }
  await fake.close();
});

test.each(["-", "/dev/stdin"])("reads the Dockerfile from standard input: --dockerfile %s", async (path) => {
  const fake = await startFakeService({ token: "right-token" });
  fake.state.addImage("base:1");
  const context = temporaryDirectory();
  writeFiles(context, { a: "a" });
  const env = { PATH: process.env.PATH ?? "", BOUGH_HOME: temporaryDirectory() };
  const words = ["--url", fake.url, "--token", "right-token", "build", ".", "--dockerfile", path];
  for (const command of ["first", "second", "second", "first"]) {
    const stdin = new Blob([`FROM base:1\nCOPY a /\nRUN ${command}\n`]);
    const build = Bun.spawn([bough, ...words], {
      cwd: context,
      env,
      stdin,
      stdout: "ignore",
      stderr: "pipe",
    });
    expect(await new Response(build.stderr).text()).toContain(` RUN ${command}\n`);
  }
  expect(fake.state.instances.map(({ command }) => command)).toEqual(["first", "second"]);
  await fake.close();
});

test("an empty standard input is a Dockerfile without instructions", async () => {
  const ended = await run(["--local", "build", ".", "--dockerfile", "-"], temporaryDirectory());
  expect(ended.stderr).toContain("[ERROR] /dev/stdin:1: file with no instructions\n");
  expect(ended.exitCode).toBe(2);
});

test("imports, builds on the engine, builds again from the cache, and lists images and sessions", async () => {
  const context = temporaryDirectory();
  const environment = { BOUGH_HOME: temporaryDirectory() };
  writeFiles(context, {
    Dockerfile: "FROM busybox:1\nCOPY greet.sh /bin/\nRUN greet.sh\n",
    "greet.sh": { text: "#!/bin/sh\necho hello\n", mode: 0o755 },
  });
  const layout = await makeBusyboxLayout(temporaryDirectory());
  expect(
    (await run(["--local", "images", "import", layout, "--tag", "busybox:1"], context, environment)).exitCode,
  ).toBe(0);
  const first = await run(["--local", "build", ".", "--tag", "app"], context, environment);
  expect(first.stderr).toContain("[INFO] stdout:\nhello\n");
  expect(first.stderr).toMatch(/\[INFO\] tagged [0-9a-f-]{36} as app:latest\n/);
  expect(first.stdout).toMatch(/^IMAGE +TAG +SESSION\n[0-9a-f-]{36} +app:latest +build:[0-9a-f]{16}\n$/);
  const second = await run(["--local", "build", "-f", "json", "--tag", "app"], context, environment);
  expect(second.stderr).toContain("[INFO] cached layer:");
  const result = JSON.parse(second.stdout);
  expect(first.stdout).toContain(result.image);
  expect((await run(["--local", "-q", "build"], context, environment)).stdout).toBe(`${result.image}\n`);
  expect((await run(["--local", "images"], context, environment)).stdout).toContain("app:latest");
  expect(
    (await run(["--local", "session", "list", "--filter", "build:"], context, environment)).stdout,
  ).toContain(result.session);
  expect((await run(["--local", "session", "show", result.session], context, environment)).stdout).toContain(
    "RUN greet.sh",
  );
});

describe("files in the working directory", () => {
  test("such as .env and bunfig.toml do not configure bough", async () => {
    const service = await startFakeService();
    service.state.addImage("base:1");
    const context = temporaryDirectory();
    const evil = 'require("node:fs").writeFileSync("owned", "")';
    writeFiles(context, {
      Dockerfile: "FROM base:1\nRUN true\n",
      ".env":
        "BOUGH_HOME=evil\nCONTREE_URL=http://127.0.0.1:1\nCONTREE_TOKEN=evil-token\nNODE_OPTIONS=--require=./evil.js\n",
      ".env.local": "BOUGH_HOME=evil\n",
      "bunfig.toml": 'preload = ["./evil.js"]\n[run]\npreload = ["./evil.js"]\n',
      "evil.js": evil,
      "package.json": '{"name": "evil", "preload": "./evil.js"}',
      "tsconfig.json": '{"compilerOptions": {"paths": {"*": ["./evil.js"]}}}',
      ".npmrc": "registry=http://127.0.0.1:1\n",
    });
    const environment = {
      BOUGH_HOME: temporaryDirectory(),
      CONTREE_URL: service.url,
      CONTREE_TOKEN: "good-token",
    };
    const ended = await run(["build"], context, environment);
    await service.close();
    expect(ended.stderr).toContain(`service: ${service.url}`);
    expect(ended.exitCode).toBe(0);
    expect(service.requests.every(({ headers }) => headers.authorization === "Bearer good-token")).toBe(true);
    expect(existsSync(join(context, "owned"))).toBe(false);
    expect(existsSync(join(context, "evil"))).toBe(false);
    expect(readdirSync(environment.BOUGH_HOME).sort()).toEqual([
      "history-v1.db",
      "running-builds",
      "sessions",
    ]);
  });
});

test.each([
  ["SIGINT", "SIGINT"],
  ["SIGTERM", "SIGTERM"],
] as const)(
  "%s cancels the running operation on the service, exits 130 and tags nothing",
  async (_, signal) => {
    const never = new Promise(() => {});
    const service = await startFakeService({ run: () => ({ until: never }) });
    service.state.addImage("base:1");
    const context = temporaryDirectory();
    writeFiles(context, { Dockerfile: "FROM base:1\nRUN wait for ever\n" });
    const child = start(["--url", service.url, "--token", "t0ken-t0ken", "build", "--tag", "app"], context, {
      BOUGH_HOME: temporaryDirectory(),
    });
    let stderr = "";
    let interrupted = false;
    for await (const chunk of child.stderr) {
      stderr += new TextDecoder().decode(chunk);
      if (stderr.includes("spawned") && !interrupted) child.kill(signal);
      interrupted ||= stderr.includes("spawned");
    }
    expect(await child.exited).toBe(130);
    const operation = [...service.state.operations.values()][0]?.record;
    await service.close();
    expect(operation?.status).toBe("CANCELLED");
    expect(stderr).toContain(`operation ${operation?.uuid} is cancelled`);
    expect(service.requestsTo(/tag$/)).toEqual([]);
  },
);

test("a second Ctrl-C ends bough at once, and the error names the operation that may still run", async () => {
  const service = await startFakeService({ run: () => ({ until: new Promise(() => {}) }) });
  service.state.addImage("base:1");
  // A service that does not respond to a cancellation.
  service.intercept = ({ method }) => (method === "DELETE" ? new Promise<never>(() => {}) : undefined);
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: "FROM base:1\nRUN wait for ever\n" });
  const child = start(["--url", service.url, "--token", "t0ken-t0ken", "build"], context, {
    BOUGH_HOME: temporaryDirectory(),
  });
  let stderr = "";
  const signs = ["spawned", "cancelling"];
  for await (const chunk of child.stderr) {
    stderr += new TextDecoder().decode(chunk);
    if (signs[0] === undefined || !stderr.includes(signs[0])) continue;
    child.kill("SIGINT");
    signs.shift();
    // Signals within a fifth of a second count as one interruption, sent to the process and to its group.
    await Bun.sleep(250);
  }
  expect(await child.exited).toBe(130);
  const [operation] = service.state.operations.keys();
  await service.close();
  expect(stderr).toEndWith(
    `[ERROR] ended without waiting; operation ${operation} may still run\n` +
      "`bough ps` shows what runs, `bough kill OPERATION` ends it.\n",
  );
});

test("the error of a refused token names the request and the option", async () => {
  const service = await startFakeService({ token: "right-token" });
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: "FROM base:1\n" });
  const ended = await run(["--url", service.url, "--token", "wrong-token", "build"], context, {
    BOUGH_HOME: temporaryDirectory(),
  });
  await service.close();
  expect(ended.exitCode).toBe(1);
  expect(ended.stderr).toContain(`POST ${service.url}/v1/images/import`);
  expect(ended.stderr).toContain("401");
  expect(ended.stderr).toContain("--token");
  expect(ended.stderr).not.toContain("wrong-token");
});

test("bough ends silently if its output is no longer read", async () => {
  const environment = { BOUGH_HOME: temporaryDirectory() };
  const child = Bun.spawn(["sh", "-c", `"${bough}" agent | head -1`], {
    env: { PATH: process.env.PATH, ...environment },
    stdout: "pipe",
    stderr: "pipe",
  });
  expect(await new Response(child.stdout).text()).toMatch(/^# bough \S+ for coding agents\n$/);
  expect(await new Response(child.stderr).text()).toBe("");
});

test("ADD of a URL takes constant memory and no temporary directory", async () => {
  const chunk = new Uint8Array(1024 * 1024).fill(7);
  const megabytes = 256;
  const source = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch(request) {
      if (request.headers.has("if-none-match")) return new Response(null, { status: 304 });
      let sent = 0;
      const pull = (controller: ReadableStreamDefaultController) => {
        if (sent++ < megabytes) controller.enqueue(chunk);
        else controller.close();
      };
      return new Response(new ReadableStream({ pull }), { headers: { ETag: '"1"' } });
    },
  });
  let measured = () => {};
  const held = new Promise<void>((resolve) => {
    measured = resolve;
  });
  const service = await startFakeService({ run: () => ({ until: held }) });
  service.state.addImage("base:1");
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: `FROM base:1\nADD ${source.url}big /big\nRUN true\n` });
  // /proc is a directory in which not even root can make a file.
  const environment = { BOUGH_HOME: temporaryDirectory(), TMPDIR: "/proc" };
  const words = ["--url", service.url, "--token", "t0ken-t0ken", "build"];
  const child = start(words, context, environment);
  let stderr = "";
  let peakKilobytes = 0;
  for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
    stderr += text;
    if (peakKilobytes > 0 || !stderr.includes("spawned")) continue;
    // The parent's accounting of a child includes the parent's own memory.
    const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
    peakKilobytes = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]);
    measured();
  }
  expect(await child.exited).toBe(0);
  expect(stderr).toContain("(268 MB, sha256:");
  expect(peakKilobytes).toBeGreaterThan(0);
  expect(peakKilobytes).toBeLessThan(120 * 1024);
  expect(service.requestsTo("POST /v1/files")[0]?.bytes?.size).toBe(megabytes * 1024 * 1024);

  service.clearRequests();
  const again = await run(words, context, environment);
  expect(again.stderr).toContain("URL cache hit (HEAD validators match)");
  expect(service.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
    "GET /v1/images",
    "GET /v1/images",
  ]);
  await service.close();
  await source.stop(true);
});
