/** Registries that lead `bough serve` to its own loopback and link-local addresses. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connect, createServer, type Server } from "node:net";
import { startGuardedFetch } from "../../../src/engine/import/fetch-guard.ts";
import { temporaryDirectory } from "../../support/bough.ts";
import { TestEngine } from "../../support/engine.ts";
import { writeFiles } from "../../support/files.ts";
import { findMachineAddress } from "../../support/machine-address.ts";

/** Something on loopback that only this machine should reach. */
let secret: Bun.Server<undefined>;
const reached: string[] = [];
/** A registry at an address of this machine that is not loopback: as far as bough can tell, elsewhere. */
let registry: Bun.Server<undefined>;
let redirect: (path: string) => Response;
let machine: ReturnType<typeof findMachineAddress>;
let engine: TestEngine;
let home: string;
const asked: string[] = [];

beforeAll(async () => {
  machine = findMachineAddress();
  secret = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      reached.push(request.url);
      return new Response("{}");
    },
  });
  registry = Bun.serve({
    hostname: machine.address,
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url);
      asked.push(pathname);
      return pathname === "/v2/" ? new Response("{}") : redirect(pathname);
    },
  });
  home = temporaryDirectory();
  const host = `${machine.address}:${registry.port}`;
  writeFiles(home, {
    ".config/containers/registries.conf": `[[registry]]\nlocation = "${host}"\ninsecure = true\n`,
  });
  proxy = await startProxy();
  const environment = { PATH: process.env.PATH, HOME: home, BOUGH_TLS_VERIFY: "false", BOUGH_RETRY: "0" };
  engine = await TestEngine.open({ environment, isServer: true });
});
afterAll(async () => {
  await engine.close();
  await secret.stop(true);
  await registry.stop(true);
  proxy.close();
  machine.release();
});

const requests: string[] = [];
let proxy: Server;

/** A proxy of the server's machine, which notes the first line of each request. */
function startProxy(): Promise<Server> {
  const server = createServer((client) => {
    client.on("error", () => undefined);
    client.once("data", (head) => {
      const [line = ""] = head.toString("latin1").split("\r\n", 1);
      requests.push(line);
      const [method, target = ""] = line.split(" ");
      const { hostname, port } = new URL(method === "CONNECT" ? `http://${target}` : target);
      const upstream = connect(Number(port), hostname, () => {
        if (method === "CONNECT") client.write("HTTP/1.1 200 OK\r\n\r\n");
        else upstream.write(head.toString("latin1").replace(target, new URL(target).pathname), "latin1");
        client.pipe(upstream).pipe(client);
      });
      upstream.on("error", () => client.destroy());
    });
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

/** An engine on a machine with a proxy. */
function openBehindProxy(port: number, more: Record<string, string> = {}) {
  const url = `http://user:p%40ss@127.0.0.1:${port}`;
  return TestEngine.open({
    environment: { PATH: process.env.PATH, HOME: home, HTTPS_PROXY: url, http_proxy: url, ...more },
    isServer: true,
  });
}

async function importing(url: string, from = engine) {
  const body = { registry: { url }, timeout: 60 };
  return from.finish(await from.json("POST", "/v1/images/import", body));
}

let repositories = 0;

/** Declares an image with a layer of a repository, and uses it. */
async function fetching(repository: string) {
  const digest = `sha256:${new Bun.CryptoHasher("sha256").update(repository).digest("hex")}`;
  const layer = { media_type: "application/vnd.oci.image.layer.v1.tar", digest, diff_id: digest, size: 2 };
  const body = { source: `docker://${repository}`, config: {}, layers: [layer] };
  const { image } = await engine.json<{ image: string }>("POST", "/v1/images/remote", body);
  return (await engine.run(image, "true")).operation;
}

const local = [
  "127.0.0.1:PORT",
  "localhost:PORT",
  "[::1]:PORT",
  "127.1:PORT",
  "0.0.0.0:PORT",
  "[::ffff:127.0.0.1]:PORT",
  "169.254.169.254",
];

test.each(local)("a layer of docker://%s is not fetched", async (host) => {
  const { status, error } = await fetching(`${host.replace("PORT", String(secret.port))}/x`);
  expect([status, error]).toEqual([
    "FAILED",
    expect.stringMatching(/: a client of this server cannot make it /),
  ]);
  expect(reached).toEqual([]);
});

test.each(local)("an import from docker://%s is refused", async (host) => {
  const url = `docker://${host.replace("PORT", String(secret.port))}/x:1`;
  expect(await importing(url)).toMatchObject({
    status: "FAILED",
    error: expect.stringMatching(/^a client of this server cannot make it connect to .*--allow-local-fetch/),
  });
  expect(reached).toEqual([]);
});

test.each([
  ["a name of loopback", () => `http://127.1:${secret.port}/secret`],
  ["a literal loopback address", () => `http://127.0.0.1:${secret.port}/secret`],
  ["localhost", () => `http://localhost:${secret.port}/secret`],
  ["link-local", () => "http://169.254.169.254/latest/meta-data/"],
])("a registry's redirect to %s is refused", async (_, target) => {
  asked.length = 0;
  // `Response.redirect` would write the address as 127.0.0.1.
  redirect = () => new Response(null, { status: 307, headers: { Location: target() } });
  expect(await importing(`docker://${machine.address}:${registry.port}/x:1`)).toMatchObject({
    status: "FAILED",
    error: expect.stringMatching(/^a client of this server cannot make it connect to .*--allow-local-fetch/),
  });
  expect(asked).toContain("/v2/x/manifests/1");
  const { error } = await fetching(`${machine.address}:${registry.port}/x${++repositories}`);
  expect(error).toMatch(/: a client of this server cannot make it connect to /);
  expect(asked.at(-1)).toMatch(/^\/v2\/x\d+\/blobs\//);
  expect(reached).toEqual([]);
});

test("a server takes no path of its own machine, and no digest that it can't verify", async () => {
  const ask = async (request: object) => {
    const body = { source: "docker://host/x", config: {}, layers: [], ...request };
    return (await engine.fetch("POST", "/v1/images/remote", body)).status;
  };
  expect(await ask({ source: "dir:/etc" })).toBe(400);
  expect(await ask({ config_digest: `sha256:${"0".repeat(64)}` })).toBe(403);
});

test("behind a proxy of the machine, a redirect to loopback is refused, and all else goes through it", async () => {
  const address = proxy.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const behind = await openBehindProxy(port);
  const host = `${machine.address}:${registry.port}`;
  try {
    const headers = { Location: `http://127.0.0.1:${secret.port}/secret` };
    redirect = () => new Response(null, { status: 307, headers });
    expect(await importing(`docker://${host}/x:1`, behind)).toMatchObject({
      status: "FAILED",
      error: expect.stringMatching(
        /^a client of this server cannot make it connect to .*--allow-local-fetch/,
      ),
    });
    expect(reached).toEqual([]);
    expect(requests).toContain(`CONNECT ${host} HTTP/1.1`);
    expect(requests).toContain(`GET http://${host}/v2/x/manifests/1 HTTP/1.1`);
  } finally {
    await behind.close();
  }
  requests.length = 0;
  asked.length = 0;
  const direct = await openBehindProxy(port, { NO_PROXY: `example.com, ${machine.address}/32` });
  try {
    redirect = () => new Response("none", { status: 404 });
    await importing(`docker://${host}/x:1`, direct);
    expect(asked).toContain("/v2/x/manifests/1");
    expect(requests).toEqual([]);
  } finally {
    await direct.close();
  }
  const dead = await openBehindProxy(1);
  try {
    const { error } = await importing(`docker://${host}/x:1`, dead);
    expect(error).toStartWith("the connection to this machine's proxy failed: ");
  } finally {
    await dead.close();
  }
});

test("a host of NO_PROXY gets no request past the guard, which connects to the address that it has checked", async () => {
  const address = proxy.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const HTTP_PROXY = `http://127.0.0.1:${port}`;
  const guard = await startGuardedFetch({ HTTP_PROXY });
  const before = process.env.NO_PROXY;
  process.env.NO_PROXY = "*";
  requests.length = 0;
  try {
    const url = `http://${machine.address}:${registry.port}/v2/`;
    expect((await guard.fetch(url)).status).toBe(200);
    expect(requests).toEqual([`GET ${url} HTTP/1.1`]);
    expect(process.env.NO_PROXY).toBe("*");
  } finally {
    guard.close();
    if (before === undefined) delete process.env.NO_PROXY;
    else process.env.NO_PROXY = before;
  }
});

test("an import from elsewhere passes through", async () => {
  redirect = (path) => new Response(`no ${path} here`, { status: 404 });
  asked.length = 0;
  expect(await importing(`docker://${machine.address}:${registry.port}/x:2`)).toMatchObject({
    status: "FAILED",
    error: expect.stringContaining("skopeo: "),
  });
  expect(asked).toContain("/v2/x/manifests/2");
});

test.each([
  ["with --allow-local-fetch", { isServer: true, allowsLocalFetch: true }],
  ["by the engine in this process", {}],
])("%s loopback is asked", async (_, options) => {
  const free = await TestEngine.open(options);
  try {
    const { error } = await importing(`docker://127.0.0.1:${secret.port}/x:1`, free);
    expect(error).not.toContain("cannot make it connect");
    expect(reached.splice(0)).not.toEqual([]);
  } finally {
    await free.close();
  }
});

test("a refused mirror is not the reason why the registry itself failed", async () => {
  const guard = await startGuardedFetch({});
  try {
    const url = "http://127.0.0.1:1/v2/";
    await expect(guard.fetch(url)).rejects.toThrow(
      "a client of this server cannot make it connect to 127.0.0.1",
    );
    expect(guard.reasonOf("GET https://r.example/v2/: 404 Not Found")).toBeUndefined();
    const mirrors = "(Mirrors also failed: [127.0.0.1/x:1: dial tcp 127.0.0.1:443: refused]): ";
    expect(guard.reasonOf(`initializing source: ${mirrors}r.example/x:1: manifest unknown`)).toBeUndefined();
    expect(guard.reasonOf('Get "http://localhost/": dial tcp 127.0.0.1:80: refused')?.message).toContain(
      "127.0.0.1",
    );
  } finally {
    guard.close();
  }
});
