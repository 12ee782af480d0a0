/** `bough serve` in a process of its own, and a second bough that works with it as with any remote service. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { parseListenAddress } from "../../src/cli/serve.ts";
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

  test("nothing is answered without the token that it printed", async () => {
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    for (const token of [null, "", "wrong", `${server.token}x`]) {
      const answer = await call("/v1/images", token);
      expect(answer.status).toBe(401);
      expect(await answer.json()).toMatchObject({ status: 401 });
    }
    expect((await call("/v1/images", server.token)).status).toBe(200);
  });

  test("another bough builds on it, and finds its layers again", async () => {
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
    expect(first.stderr).toContain("[INFO] stdout:\nserved\n[INFO] stderr:\ndone\n");
    expect(first.exitCode).toBe(0);
    expect((await build()).stderr).toContain("[INFO] cached layer:");
  });

  test("files of the server's machine can't be imported over the network", async () => {
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

test("on a Unix socket that only its owner can open, with a token of one's own, which is not printed", async () => {
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

test.each([
  ["127.0.0.1:0", { kind: "tcp", hostname: "127.0.0.1", port: 0 }],
  ["localhost:8080", { kind: "tcp", hostname: "localhost", port: 8080 }],
  ["[::1]:80", { kind: "tcp", hostname: "::1", port: 80 }],
  ["unix:bough.sock", { kind: "unix", path: "/here/bough.sock" }],
  ["unix:/run/bough.sock", { kind: "unix", path: "/run/bough.sock" }],
] as const)("--listen %s", (given, address) => expect(parseListenAddress(given, "/here")).toEqual(address));

test.each([
  "8080",
  ":8080",
  "localhost",
  "localhost:",
  "localhost:99999",
  "::1:80",
  "unix:",
  "http://localhost:80",
])("--listen %s is refused", (given) =>
  expect(() => parseListenAddress(given, "/")).toThrow("--listen takes HOST:PORT or unix:PATH"),
);
