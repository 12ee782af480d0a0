/** `bough push` to a registry on loopback (Debian's docker-registry). */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/clock.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";

setDefaultTimeout(120_000);

const credentials = { username: "ann", password: "p:a ss\"'wörd" };
const places = temporaryDirectory();
const temporary = join(places, "temporary");
const environment = {
  BOUGH_HOME: temporaryDirectory(),
  TMPDIR: temporary,
  DOCKER_CONFIG: join(places, "none"),
};
let open: Registry;
let closed: Registry;

const bough = (words: readonly string[], more: Record<string, string> = {}) =>
  runBough(["--local", ...words], { workingDirectory: places, environment: { ...environment, ...more } });

beforeAll(async () => {
  mkdirSync(temporary);
  [open, closed] = await Promise.all([Registry.start(), Registry.start(credentials)]);
  const base = await makeBusyboxLayout(join(places, "base"));
  await bough(["images", "import", base, "--tag", "base:1"]);
  writeFiles(join(places, "context"), { Dockerfile: "FROM base:1\nRUN echo hi > /hi\n" });
  const { exitCode, stderr } = await bough(["build", "context", "--tag", `${open.host}/team/app:1`]);
  if (exitCode !== 0) throw new Error(stderr);
});

afterAll(() => Promise.all([open?.stop(), closed?.stop()]));

const manifestRequest = (name: string) =>
  expect.stringMatching(new RegExp(`^GET /v2/${name}/manifests/sha256:[0-9a-f]{64}$`));

function inspect(reference: string): { Digest: string; Layers: string[] } {
  const image = `docker://${reference}`;
  const { success, stdout, stderr } = Bun.spawnSync(["skopeo", "inspect", "--tls-verify=false", image]);
  if (!success) throw new Error(stderr.toString());
  return JSON.parse(stdout.toString());
}

test("a push goes to the registry in the image's tag, and has the digest of an export", async () => {
  const { exitCode, stdout, stderr } = await bough(["push", `${open.host}/team/app:1`, "-f", "json"]);
  expect(stderr).toContain(`pushing docker://${open.host}/team/app:1`);
  expect(exitCode).toBe(0);
  const { digest } = JSON.parse(stdout);
  expect(inspect(`${open.host}/team/app:1`).Digest).toBe(digest);
  const exported = await bough(["-q", "images", "export", `${open.host}/team/app:1`, "oci:layout:1"]);
  expect(exported.stdout.trim()).toBe(digest);
  expect(readdirSync(temporary)).toEqual([]);
});

test("a second push sends and compresses nothing", async () => {
  const { exitCode, stderr } = await bough(["-L", "debug", "push", `${open.host}/team/app:1`]);
  expect(exitCode).toBe(0);
  expect(stderr).not.toContain("layer 1/2");
  expect(stderr).toContain("already in the registry: 2 of 2 layers");
  expect(open.requests().slice(-2)).toEqual(["PUT /v2/team/app/manifests/1", manifestRequest("team/app")]);
});

test("layers that were pushed to one registry are sent to another one that lacks them", async () => {
  const other = await Registry.start();
  try {
    const name = `${other.host}/other:2`;
    const { exitCode, stderr } = await bough(["push", `${open.host}/team/app:1`, name]);
    expect(stderr).not.toContain("ERROR");
    expect(exitCode).toBe(0);
    expect(inspect(name).Layers).toEqual(inspect(`${open.host}/team/app:1`).Layers);
    expect(readdirSync(temporary)).toEqual([]);
  } finally {
    await other.stop();
  }
});

test("only the layers that a registry lacks are compressed again", async () => {
  const other = await Registry.start();
  try {
    writeFiles(join(places, "three"), { Dockerfile: "FROM base:1\nRUN echo 1 > /1\nRUN echo 2 > /2\n" });
    await bough(["build", "three", "--tag", "three:1"]);
    await bough(["push", "three:1", `${open.host}/three:1`]);
    // The registry has the lowest layer only, as after an interrupted push.
    await bough(["push", "base:1", `${other.host}/base:1`]);
    const { exitCode, stderr } = await bough(["-L", "debug", "push", "three:1", `${other.host}/base:three`]);
    expect(exitCode).toBe(0);
    expect(stderr).not.toContain("layer 1/3");
    expect(stderr).toMatch(/layer 2\/3, [\d.]+ k?B of 2 B \(100%\)/);
    expect(stderr).toContain("already in the registry: 1 of 3 layers");
    expect(inspect(`${other.host}/base:three`).Layers).toHaveLength(3);
    expect(readdirSync(temporary)).toEqual([]);
  } finally {
    await other.stop();
  }
});

test("a pushed image can be imported and run", async () => {
  const own = { BOUGH_HOME: temporaryDirectory() };
  writeFiles(join(places, "again"), { Dockerfile: `FROM ${open.host}/team/app:1\nRUN cat /hi\n` });
  await bough(["push", `${open.host}/team/app:1`]);
  const { exitCode, stderr } = await bough(["build", "again"], own);
  expect(stderr).toContain("stdout:\nhi\n");
  expect(exitCode).toBe(0);
});

test("credentials are those of docker login; a wrong password is refused", async () => {
  const place = `${closed.host}/private:1`;
  const login = (password: string) => {
    const directory = temporaryDirectory();
    const auth = Buffer.from(`${credentials.username}:${password}`).toString("base64");
    writeFileSync(join(directory, "auth.json"), JSON.stringify({ auths: { [closed.host]: { auth } } }));
    return { REGISTRY_AUTH_FILE: join(directory, "auth.json") };
  };
  for (const environment of [{}, login("wrong")]) {
    const { exitCode, stderr } = await bough(["push", "base:1", place], environment);
    expect(stderr).toMatch(
      new RegExp(`pushing docker://${place} failed: .*(unauthorized|authentication)`, "i"),
    );
    expect(stderr).toContain(`The registry ${closed.host} requires a login`);
    expect(stderr).toContain(`docker login ${closed.host}, or skopeo login ${closed.host}.`);
    expect(stderr).not.toContain(temporary);
    expect(exitCode).toBe(1);
  }
  const { exitCode } = await bough(["push", "base:1", place], login(credentials.password));
  expect(exitCode).toBe(0);
});

test.each([
  ["push base:1", "base:1 does not say which registry to push to"],
  ["push base:1 HOST/a@b", "is not a place in a registry"],
])("%s is refused before anything is read", async (line, problem) => {
  const { exitCode, stderr } = await bough(line.split(" "));
  expect(stderr).toContain(problem);
  expect(exitCode).toBe(2);
});

test("the error of an unreachable registry names it", async () => {
  const { exitCode, stderr } = await bough(["push", "base:1", "127.0.0.1:1/app:1"]);
  expect(stderr).toContain("127.0.0.1:1");
  expect(exitCode).toBe(1);
  expect(readdirSync(temporary)).toEqual([]);
});

test("the error of an unreachable registry says what to do", async () => {
  const refusing = await bough(["push", "base:1", "127.0.0.1:1/app:1"]);
  expect(refusing.stderr).toContain(
    "pushing docker://127.0.0.1:1/app:1 failed: GET http://127.0.0.1:1/v2/: connection refused",
  );
  expect(refusing.stderr).toContain(
    "Nothing answers at 127.0.0.1:1: start the registry, or correct the address.",
  );
  expect(refusing.exitCode).toBe(1);
});

test.each<[string, (method: string) => number, string]>([
  ["knows no other address", () => 404, "GET ADDRESS responded with 404 Not Found: hello"],
  [
    "shows it at every address",
    (method) => (method === "PUT" ? 405 : 200),
    "responded with 405 Method Not Allowed: hello",
  ],
])("a push to a server that shows a web page and %s is an error", async (_, status, reason) => {
  const requests: string[] = [];
  const server = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0 },
    fetch({ method, url }) {
      requests.push(`${method} ${new URL(url).pathname}`);
      return new Response("<!doctype html>\n<h1>hello</h1>\n", {
        status: status(method),
        headers: { "content-type": "text/html" },
      });
    },
  });
  try {
    const place = `docker://127.0.0.1:${server.port}/app:1`;
    const { exitCode, stdout, stderr } = await bough(["push", "base:1", place.replace("docker://", "")]);
    expect(requests[0]).toBe("GET /v2/");
    expect(stderr).toContain(`[ERROR] pushing ${place} failed: `);
    expect(stderr).toContain(reason.replace("ADDRESS", `http://127.0.0.1:${server.port}/v2/`));
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
    expect(readdirSync(temporary)).toEqual([]);
  } finally {
    await server.stop(true);
  }
});

test.each<[string, (request: { method: string; path: string }) => Response, ended: object, said: string[]]>([
  [
    "responds with 200 to everything",
    () => new Response("<h1>hello</h1>"),
    { exitCode: 1, stdout: "" },
    [
      "[ERROR] pushing docker://HOST/app:1 failed: HOST accepted the image, but returns something else",
      "Is HOST a",
    ],
  ],
  [
    "says another digest",
    ({ method, path }) => {
      const headers = { "docker-content-digest": `sha256:${"5".repeat(64)}` };
      if (method === "PUT" && path.includes("/manifests/")) return new Response("", { status: 201, headers });
      return new Response("", { status: 200 });
    },
    { exitCode: 1, stdout: "" },
    [
      `[ERROR] pushing docker://HOST/app:1 failed: HOST has stored sha256:${"5".repeat(64)} in place of sha256:`,
    ],
  ],
  [
    "allows no reads",
    ({ method, path }) => new Response("", { status: method === "GET" && path !== "/v2/" ? 403 : 200 }),
    { exitCode: 0, stdout: expect.stringContaining("sha256:") },
    [
      "[WARN] the registry has accepted the image, but does not return it: GET http://HOST/v2/app/manifests/sha256:",
    ],
  ],
])("a push to a server that %s is checked by reading the manifest", async (_, respond, ended, said) => {
  const requests: string[] = [];
  const server = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0 },
    async fetch(request) {
      const { method } = request;
      const path = new URL(request.url).pathname;
      requests.push(`${method} ${path}`);
      await request.arrayBuffer();
      return respond({ method, path });
    },
  });
  try {
    const host = `127.0.0.1:${server.port}`;
    const { exitCode, stdout, stderr } = await bough(["push", "base:1", `${host}/app:1`]);
    for (const text of said) expect(stderr).toContain(text.replaceAll("HOST", host));
    expect({ exitCode, stdout }).toEqual(ended as never);
    const asksBack = !stderr.includes("has stored");
    expect(requests.slice(asksBack ? -2 : -1)).toEqual([
      "PUT /v2/app/manifests/1",
      ...(asksBack ? [manifestRequest("app")] : []),
    ]);
    expect(readdirSync(temporary)).toEqual([]);
  } finally {
    await server.stop(true);
  }
});

test("a registry that does not return the manifest within a minute has the image", async () => {
  const { promise: hangs, resolve: hang } = Promise.withResolvers<void>();
  const server = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0, idleTimeout: 0 },
    async fetch(request) {
      await request.arrayBuffer();
      if (request.method !== "GET" || request.url.endsWith("/v2/")) return new Response("");
      hang();
      return await new Promise<never>(() => {});
    },
  });
  const sleep: Clock["sleep"] = (milliseconds, signal) =>
    milliseconds > 50_000 ? hangs : systemClock.sleep(milliseconds, signal);
  try {
    const { exitCode, stderr } = await runBough(
      ["--local", "push", "base:1", `127.0.0.1:${server.port}/app:1`],
      { workingDirectory: places, environment, clock: { ...systemClock, sleep } },
    );
    expect(stderr).toContain("does not return it: no answer within 60 s");
    expect(exitCode).toBe(0);
    expect(readdirSync(temporary)).toEqual([]);
  } finally {
    await server.stop(true);
  }
});

test("a full registry is an error, and does not have the image", async () => {
  const full = await Registry.start(undefined, 300_000);
  try {
    const { exitCode, stderr } = await bough(["push", "base:1", `${full.host}/app:1`]);
    expect(stderr).toMatch(/\[ERROR\] pushing .*(internal server error|500|no space)/i);
    expect(exitCode).toBe(1);
    expect(() => inspect(`${full.host}/app:1`)).toThrow("manifest unknown");
    expect(readdirSync(temporary)).toEqual([]);
  } finally {
    await full.stop();
  }
});

test("a push fails if the connection breaks, and the next one succeeds", async () => {
  const registry = await Registry.start();
  const [hostname = "", port] = registry.host.split(":");
  let isBroken = true;
  // Forwards bytes, and closes the connection in the middle of a layer.
  const proxy = Bun.listen<{ to?: Bun.Socket; waiting: Buffer[]; bytes: number }>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      async open(client) {
        client.data = { waiting: [], bytes: 0 };
        const to = await Bun.connect({
          hostname,
          port: Number(port),
          socket: { data: (_, bytes) => void client.write(bytes), close: () => void client.end() },
        });
        for (const bytes of client.data.waiting) to.write(bytes);
        client.data.to = to;
      },
      data(client, bytes) {
        client.data.bytes += bytes.byteLength;
        if (isBroken && client.data.bytes > 100_000) {
          client.data.to?.end();
          client.terminate();
        } else if (client.data.to === undefined) client.data.waiting.push(Buffer.from(bytes));
        else client.data.to.write(bytes);
      },
      close: (client) => void client.data.to?.end(),
    },
  });
  try {
    const small = Bun.spawnSync(["head", "-c", "300000", "/dev/urandom"]).stdout;
    writeFiles(join(places, "random"), { Dockerfile: "FROM base:1\nCOPY data /data\nRUN true > /x\n" });
    writeFileSync(join(places, "random/data"), small);
    await bough(["build", "random", "--tag", "random:1"]);
    const place = `127.0.0.1:${proxy.port}/random:1`;
    const failed = await bough(["push", "random:1", place]);
    expect(failed.stderr).toContain(`[ERROR] pushing docker://${place} failed: `);
    expect(failed.exitCode).toBe(1);
    expect(readdirSync(temporary)).toEqual([]);
    isBroken = false;
    // To the registry itself, which has what came through the proxy.
    const { exitCode, stderr } = await bough(["push", "random:1", `${registry.host}/random:1`]);
    expect(stderr).not.toContain("ERROR");
    expect(exitCode).toBe(0);
    expect(inspect(`${registry.host}/random:1`).Layers).toHaveLength(3);
  } finally {
    proxy.stop(true);
    await registry.stop();
  }
});
