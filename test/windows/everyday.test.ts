/** What else the Windows program meets there: drive letters, the home directory, names of variables, docker. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { runBough } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { compilePipe, installPrograms, programsPath } from "./programs.ts";
import { startWindowsBough, type WindowsBough } from "./windows-bough.ts";

let windows: WindowsBough;
let programs: { stop(): void };
let server: Bun.Server<undefined>;
/** Requests to the server, which is a registry and docker's daemon. */
const requests: { line: string; authorization: string | null; bytes: number }[] = [];

beforeAll(async () => {
  windows = await startWindowsBough();
  mkdirSync(join(windows.drive, "out"));
  writeFiles(windows.drive, { "app/Dockerfile": "FROM base:1\nRUN echo made > /made\n" });
  programs = installPrograms(windows.drive, {
    "docker-credential-wincred": ({ input }) => ({
      stdout: JSON.stringify({ ServerURL: input, Username: "ann", Secret: "from wincred" }),
    }),
  });
  server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: answer });
});
afterAll(() => stopAll());

async function stopAll(): Promise<void> {
  await Promise.all([windows.stop(), programs.stop(), server.stop(true)]);
}

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url);
  const authorization = request.headers.get("authorization");
  const { byteLength } = await request.arrayBuffer();
  requests.push({ line: `${request.method} ${pathname}`, authorization, bytes: byteLength });
  if (pathname.startsWith("/v2/"))
    return authorization === null
      ? new Response("who are you?", { status: 401, headers: { "www-authenticate": "Basic" } })
      : new Response("none", { status: 404 });
  return Response.json(pathname === "/info" ? { ID: "daemon" } : pathname.endsWith("/json") ? [] : {});
}

const environment = { BOUGH_HOME: "D:\\home", WINEPATH: programsPath };
const bough = (...words: string[]) => windows.bough(words, { environment });
const shell = (line: string) => windows.shell(line, { environment });
const passed = (ended: { exitCode: number; stderr: string }) => expect(ended).toMatchObject({ exitCode: 0 });

test("a link that can't be made is named, with what to do", async () => {
  writeFiles(windows.drive, {
    "links/Dockerfile":
      "FROM base:1 AS made\nRUN mkdir /o && ln -s f /o/link\nFROM scratch\nCOPY --from=made /o /\n",
  });
  const { exitCode, stderr } = await bough("build", "--docker", "links", "-o", "D:\\linked");
  expect(exitCode).toBe(1);
  expect(stderr).toContain("cannot make the link D:\\linked/link: ");
  expect(stderr).toContain("developer mode");
});

describe("a drive's letter is a part of its path", () => {
  test.each([
    ["docker-archive:D:\\out\\a.tar", "a.tar"],
    ["docker-archive:D:/out/b.tar:app:1", "b.tar"],
    ["oci:D:\\out\\layout:1", "layout"],
  ])("images export base:1 %s", async (destination, made) => {
    passed(await bough("images", "export", "base:1", destination));
    expect(readdirSync(join(windows.drive, "out"))).toContain(made);
  });

  test.each(["docker-archive:D:\\out\\a.tar", "oci:D:\\out\\layout:1"])(
    "images import %s",
    async (source) => {
      const { stderr } = await bough("images", "import", source, "--tag", "again:1");
      expect(stderr).toContain(`importing ${source}\n`);
    },
  );

  test("in the output and the cache of a build", async () => {
    passed(await bough("build", "--docker", "D:\\app", "-o", "type=docker,dest=D:\\out\\c.tar"));
    expect(existsSync(join(windows.drive, "out/c.tar"))).toBe(true);
    // The service of a build has its own cache: only who looks at one needs the directory.
    const cache = `type=local,dest=${join(windows.drive, "out/cache")}`;
    const made = await runBough(["build", "--local", "app", "--cache-to", cache], {
      workingDirectory: windows.drive,
      environment: { BOUGH_HOME: windows.home },
    });
    passed(made);
    const { stdout } = await bough("cache", "show", "D:\\out\\cache");
    expect(stdout).toContain("RUN echo made");
  });

  test("in files of a run", async () => {
    writeFiles(windows.drive, { "out/x": "content\n" });
    const { stdout } = await bough("run", "-F", "D:/out/x:/k", "-D", "base:1", "--", "cat", "/k");
    expect(stdout).toBe("content\n");
  });

  test("in a bake file", async () => {
    const target = { context: "app", dockerfile: "D:\\out\\Other" };
    writeFiles(windows.drive, {
      "out/Other": "FROM base:1\nRUN echo other\n",
      "bake.json": JSON.stringify({ target: { default: target } }),
    });
    const { stderr } = await bough("bake", "-f", "bake.json");
    expect(stderr).toContain("RUN echo other");
  });
});

test("names of variables have no case", async () => {
  writeFiles(windows.drive, {
    "secret/Dockerfile": "FROM base:1\nRUN --mount=type=secret,id=s tr a-z A-Z < /run/secrets/s\n",
  });
  const { stderr } = await shell("set MYSEC=hidden&& D:\\bough.exe build secret --secret id=s,env=mysec");
  expect(stderr).toContain("HIDDEN");
});

test("logins are found in the home directory, in a file and with wincred", async () => {
  const host = server.url.host;
  const login = async (config: object) => {
    writeFiles(windows.drive, { "config.json": JSON.stringify(config) });
    await shell("mkdir %USERPROFILE%\\.docker & copy D:\\config.json %USERPROFILE%\\.docker\\config.json");
    requests.length = 0;
    await bough("cache", "show", `${host}/team/cache:1`);
    return requests.findLast(({ authorization }) => authorization !== null)?.authorization;
  };
  const basic = (text: string) => `Basic ${Buffer.from(text).toString("base64")}`;
  const auth = Buffer.from("bob:from a file").toString("base64");
  expect(await login({ auths: { [host]: { auth } } })).toBe(basic("bob:from a file"));
  expect(await login({ credsStore: "wincred" })).toBe(basic("ann:from wincred"));
});

test("the plug-in is installed, found and removed", async () => {
  passed(await bough("plugin", "install"));
  const status = async () => JSON.parse((await bough("plugin", "status", "-f", "json")).stdout);
  expect(await status()).toMatchObject({ state: "installed", program: "D:\\bough.exe", isCurrent: true });
  passed(await bough("plugin", "install"));
  const { stdout } = await shell("%USERPROFILE%\\.docker\\cli-plugins\\docker-buildx.exe version");
  expect(stdout).toContain("github.com/docker/buildx");
  passed(await bough("plugin", "remove"));
  expect(await status()).toMatchObject({ state: "missing" });
});

test("docker's daemon is reached through its named pipe", async () => {
  compilePipe(windows.drive, "\\\\.\\pipe\\docker_engine", server.port ?? 0);
  const pipe = shell("D:\\programs\\pipe.exe");
  while (!existsSync(join(windows.drive, "pipe-listens"))) await Bun.sleep(20);
  requests.length = 0;
  passed(await bough("build", "--docker", "app", "--load", "--tag", "app:1"));
  expect(requests.find(({ line }) => line === "POST /images/load")?.bytes).toBeGreaterThan(1_000_000);
  await stopAll();
  await pipe;
});
