/** `bough serve` in a separate process, and a second bough that uses it as a remote service. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { type ServerProcess, startServer } from "../support/server.ts";

const environment = { BOUGH_HOME: "" };
let layout: string;

beforeAll(async () => {
  environment.BOUGH_HOME = temporaryDirectory();
  layout = await makeBusyboxLayout(temporaryDirectory());
  await runBough(["--local", "images", "import", layout, "--tag", "busybox:1"], {
    workingDirectory: "/",
    environment,
  });
});

describe("on a free port of the loopback interface", () => {
  let server: ServerProcess;
  beforeAll(async () => {
    server = await startServer(environment);
  });
  afterAll(() => server.stop());
  const call = (path: string, token: string | null) =>
    fetch(server.url + path, token === null ? {} : { headers: { Authorization: `Bearer ${token}` } });

  test("responds with 401 to requests without the token that it printed", async () => {
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    for (const token of [null, "", "wrong", `${server.token}x`]) {
      const answer = await call("/v1/images", token);
      expect(answer.status).toBe(401);
      expect(await answer.json()).toMatchObject({ status: 401 });
    }
    expect((await call("/v1/images", server.token)).status).toBe(200);
  });

  test("announces that it closes a connection, if the client asks for that", async () => {
    for (const [connection, announced] of [
      ["close", "close"],
      ["keep-alive, Close", "close"],
      ["keep-alive", null],
    ] as const) {
      const headers = { Authorization: `Bearer ${server.token}`, Connection: connection };
      const answer = await fetch(`${server.url}/v1/images`, { headers });
      expect(answer.headers.get("Connection")).toBe(announced);
    }
  });

  test("another bough builds on it, and reuses its layers", async () => {
    const context = temporaryDirectory();
    const client = {
      BOUGH_HOME: temporaryDirectory(),
      CONTREE_URL: server.url,
      CONTREE_TOKEN: server.token ?? "",
    };
    writeFiles(context, {
      Dockerfile: "FROM busybox:1\nCOPY a /a\nRUN cat /a; sleep 0.1; echo done >&2\n",
      a: "served\n",
    });
    const build = () =>
      runBough(["build", "--tag", "app"], { workingDirectory: context, environment: client });
    const first = await build();
    expect(first.stderr).toContain("[INFO] stdout:\nserved\ndone\n");
    expect(first.exitCode).toBe(0);
    expect((await build()).stderr).toContain("[INFO] cached layer:");

    const [, operation] = /op=(\S+)/.exec(first.stderr) ?? [];
    const events = await call(`/v1/operations/${operation}/events`, server.token);
    expect(events.headers.get("X-Accel-Buffering")).toBe("no");
  });

  test.each([
    ["build", ["build", "--network=host"]],
    ["run", ["run", "--use", "busybox:1", "--network=host", "--", "true"]],
  ])("%s cannot use the network of the server's machine", async (_, words) => {
    const context = temporaryDirectory();
    writeFiles(context, { Dockerfile: "FROM busybox:1\nRUN true\n" });
    const { exitCode, stderr } = await runBough(words, {
      workingDirectory: context,
      environment: {
        BOUGH_HOME: temporaryDirectory(),
        CONTREE_URL: server.url,
        CONTREE_TOKEN: server.token ?? "",
      },
    });
    expect(stderr).toContain("--network=host: this service does not offer its host's network");
    expect(stderr).not.toContain("spawned");
    expect(exitCode).toBe(1);
  });

  test("clients cannot import files of the server's machine", async () => {
    const client = {
      BOUGH_HOME: temporaryDirectory(),
      CONTREE_URL: server.url,
      CONTREE_TOKEN: server.token ?? "",
    };
    const refused = await runBough(["images", "import", layout], {
      workingDirectory: "/",
      environment: client,
    });
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain("cannot be imported through a server");
  });
});

test("listens on a Unix socket that only its owner can open, and does not print a given token", async () => {
  const path = join(temporaryDirectory(), "bough.sock");
  const server = await startServer(environment, "--listen", `unix:${path}`, "--token", "token-of-my-own");
  expect(server).toMatchObject({ url: `unix:${path}`, token: null });
  expect((statSync(path).mode & 0o777).toString(8)).toBe("600");
  const headers = { Authorization: "Bearer token-of-my-own" };
  expect((await fetch("http://engine/v1/images", { unix: path, headers })).status).toBe(200);
  expect((await fetch("http://engine/v1/images", { unix: path })).status).toBe(401);
  const { exitCode, stderr } = await server.stop();
  expect(exitCode).toBe(0);
  expect(stderr).not.toContain("token-of-my-own");
});

test("prints one warning if it listens on all addresses", async () => {
  const server = await startServer(environment, "--listen", "0.0.0.0:0", "--token", "token-of-my-own");
  const { stderr } = await server.stop();
  expect(stderr.match(/\[WARN\]/g)).toHaveLength(1);
  expect(stderr).toContain("all addresses of this machine without TLS");
});

describe("what orchestrators do", () => {
  const token = "token-of-my-own";
  const serve = (...words: string[]) => startServer(environment, "--token", token, ...words);

  /** Starts a build on a server, and waits until its first command runs there. */
  async function startBuild(url: string, dockerfile: string) {
    const context = temporaryDirectory();
    writeFiles(context, { Dockerfile: dockerfile });
    const client = { BOUGH_HOME: temporaryDirectory(), CONTREE_URL: url, CONTREE_TOKEN: token };
    const build = runBough(["build", "--docker", "."], { workingDirectory: context, environment: client });
    const headers = { Authorization: `Bearer ${token}` };
    for (;;) {
      const answer = await fetch(`${url}/v1/operations?status=EXECUTING`, { headers });
      if (JSON.stringify(await answer.json()).includes("sleep")) return build;
      await Bun.sleep(20);
    }
  }

  test("probes need no token, and nothing else is without one", async () => {
    const server = await serve();
    const ask = async (path: string, method = "GET") => {
      const answer = await fetch(server.url + path, { method });
      return [answer.status, await answer.text()];
    };
    expect(await ask("/healthz")).toEqual([200, "ok\n"]);
    expect(await ask("/readyz")).toEqual([200, "ok\n"]);
    expect(await ask("/readyz", "HEAD")).toEqual([200, ""]);
    expect((await ask("/healthz", "POST"))[0]).toBe(405);
    for (const path of ["/", "/healthz/", "/v1/whoami"]) expect((await ask(path))[0]).toBe(401);
    expect((await server.stop("SIGTERM")).exitCode).toBe(0);
  });

  test("SIGTERM lets a running build end, which is not ready for others then", async () => {
    const server = await serve();
    const build = await startBuild(server.url, "FROM busybox:1\nRUN sleep 3\nRUN echo second\n");
    const stopped = server.stop("SIGTERM");
    let isReady = true;
    while (isReady) isReady = (await fetch(`${server.url}/readyz`)).ok;
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    expect(await build).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("second\n") });
    const { exitCode, stderr } = await stopped;
    expect(exitCode).toBe(0);
    expect(stderr).toContain("[INFO] SIGTERM: running builds have 60 seconds to end");
    expect(stderr).not.toContain("while running");
  });

  test("what takes longer is ended after --stop-timeout, or at once by a second signal", async () => {
    const startCommand = async (url: string) => {
      const client = { BOUGH_HOME: temporaryDirectory(), CONTREE_URL: url, CONTREE_TOKEN: token };
      const words = ["run", "-d", "--use", "busybox:1", "--", "sleep", "1000"];
      const { exitCode } = await runBough(words, { workingDirectory: "/", environment: client });
      expect(exitCode).toBe(0);
    };
    const server = await serve("--stop-timeout", "1");
    await startCommand(server.url);
    const { exitCode, stderr } = await server.stop("SIGTERM");
    expect(exitCode).toBe(0);
    expect(stderr).toContain("[WARN] ended after 1 second, while running: 1 operation");

    const other = await serve("--stop-timeout", "1000");
    await startCommand(other.url);
    const stopped = other.stop("SIGTERM");
    while ((await fetch(`${other.url}/readyz`)).ok);
    process.kill(other.pid, "SIGINT");
    expect((await stopped).exitCode).toBe(0);
    const words = ["serve", "--stop-timeout", "soon"];
    expect(await runBough(words, { workingDirectory: "/", environment })).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("--stop-timeout takes a positive"),
    });
  });
});
