/** Logins for the servers of `ADD <url>` and of contexts in secrets, as BuildKit has them. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

let service: FakeService;
let asked: [path: string, authorization: string | null][];
let server: ReturnType<typeof startServer>;
let archive: Uint8Array<ArrayBuffer>;
beforeEach(async () => {
  service = await startFakeService();
  service.state.addImage("base:1");
  asked = [];
  server = startServer();
});
afterEach(async () => {
  await service.close();
  await server.stop(true);
});

/** A server that keeps what it is asked with, and redirects `/elsewhere` to itself under another name. */
function startServer() {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch({ url, headers }) {
      const { pathname, port } = new URL(url);
      asked.push([pathname, headers.get("authorization")]);
      if (pathname === "/elsewhere") return Response.redirect(`http://localhost:${port}/f`, 302);
      if (pathname === "/context.tar") return new Response(archive);
      return new Response("private", { status: pathname === "/closed" ? 401 : 200 });
    },
  });
}

function add(path: string, secrets: Record<string, string>) {
  const workingDirectory = temporaryDirectory();
  writeFiles(workingDirectory, {
    Dockerfile: `FROM base:1\nADD ${path.replace("HOST", `127.0.0.1:${server.port}`)} /file\n`,
  });
  const given = Object.entries(secrets).map(([id, value], index) => [id, `SECRET_${index}`, value] as const);
  const options = given.flatMap(([id, name]) => ["--secret", `id=${id},env=${name}`]);
  const environment = {
    ...Object.fromEntries(given.map(([, name, value]) => [name, value])),
    CONTREE_URL: service.url,
    CONTREE_TOKEN: "t0ken-t0ken",
    BOUGH_HOME: temporaryDirectory(),
  };
  return runBough(["build", "--docker", ...options], { workingDirectory, environment });
}

const token = "HTTP_AUTH_TOKEN_127.0.0.1";
const header = "HTTP_AUTH_HEADER_127.0.0.1";

test.each<[string, string, Record<string, string>, string | null]>([
  ["a token", "http://HOST/f", { [token]: "t1" }, "Bearer t1"],
  ["a token with a line end", "http://HOST/f", { [token]: "t1\n" }, "Bearer t1"],
  ["a whole header", "http://HOST/f", { [header]: "Basic eDp5" }, "Basic eDp5"],
  ["both: the token", "http://HOST/f", { [header]: "Basic eDp5", [token]: "t1" }, "Bearer t1"],
  ["a token, and a login in the address", "http://u:p@HOST/f", { [token]: "t1" }, "Bearer t1"],
  ["a login in the address", "http://u:p@HOST/f", {}, "Basic dTpw"],
  ["another server's token", "http://HOST/f", { HTTP_AUTH_TOKEN_localhost: "t1" }, null],
  ["git's token", "http://HOST/f", { GIT_AUTH_TOKEN: "t1", "GIT_AUTH_TOKEN.127.0.0.1": "t1" }, null],
])("%s", async (_, url, secrets, authorization) => {
  const { exitCode, stderr } = await add(url, secrets);
  expect(stderr).not.toContain("has no effect");
  expect(exitCode).toBe(0);
  expect(asked.length).toBeGreaterThan(0);
  for (const each of asked) expect(each).toEqual(["/f", authorization]);
});

test("a login goes to no other server: neither that of the redirect nor its own", async () => {
  await add("http://HOST/elsewhere", { [token]: "t1", HTTP_AUTH_TOKEN_localhost: "t2" });
  expect(new Set(asked.map((each) => each.join(" ")))).toEqual(new Set(["/elsewhere Bearer t1", "/f "]));
});

test("the error of a server that wants a login says how to give one, and never shows a secret", async () => {
  const { exitCode, stderr } = await add("http://HOST/closed", { [token]: "wr0ng-t0ken" });
  expect(exitCode).toBe(1);
  expect(stderr).toContain("the server responded with 401");
  expect(stderr).toContain(`--secret id=${token},env=NAME`);
  expect(stderr).not.toContain("wr0ng-t0ken");
  const lines = await add("http://HOST/f", { [header]: "Basic a\nX-Injected: 1" });
  expect(lines).toMatchObject({ exitCode: 2, stdout: "" });
  expect(lines.stderr).toContain(`--secret id=${header}: it can't be a header, which is one line`);
});

test.each([
  ["the context", (url: string) => [url]],
  ["a named context", (url: string) => [".", "--build-context", `named=${url}`]],
])("%s at an address gets a login, too", async (_, contextOf) => {
  const files = temporaryDirectory();
  writeFiles(files, { Dockerfile: "FROM base:1\n", file: "x" });
  archive = new Uint8Array(Bun.spawnSync(["tar", "-C", files, "-c", "."]).stdout);
  const workingDirectory = temporaryDirectory();
  writeFiles(workingDirectory, { Dockerfile: "FROM base:1\nCOPY --from=named context /\nRUN make\n" });
  const words = [
    "build",
    "--docker",
    "--secret",
    `id=${token},env=T`,
    ...contextOf(`http://127.0.0.1:${server.port}/context.tar`),
  ];
  const { exitCode, stderr } = await runBough(words, {
    workingDirectory,
    environment: {
      T: "t1",
      CONTREE_URL: service.url,
      CONTREE_TOKEN: "t0ken-t0ken",
      BOUGH_HOME: temporaryDirectory(),
    },
  });
  expect(stderr).not.toContain("has no effect");
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
  expect(asked.length).toBeGreaterThan(0);
  for (const each of asked) expect(each).toEqual(["/context.tar", "Bearer t1"]);
});

test("a secret for a server has no effect where nothing is added", async () => {
  const workingDirectory = temporaryDirectory();
  writeFiles(workingDirectory, { Dockerfile: "FROM base:1\n" });
  const { stderr } = await runBough(["build", "--docker", "--secret", `id=${token},env=T`], {
    workingDirectory,
    environment: {
      T: "t1",
      CONTREE_URL: service.url,
      CONTREE_TOKEN: "t0ken-t0ken",
      BOUGH_HOME: temporaryDirectory(),
    },
  });
  expect(stderr).toContain(`--secret id=${token} has no effect`);
});
