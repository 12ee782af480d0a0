/** Contexts of builds by the Windows program: directories, archives and repositories. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FileSpec, writeFiles } from "../support/files.ts";
import { makeRepository, serveRepositories } from "../support/git-server.ts";
import { type RawEntry, tarOf } from "../support/tar-bytes.ts";
import { type Call, installPrograms, programsPath, runGit } from "./programs.ts";
import { startWindowsBough, type WindowsBough } from "./windows-bough.ts";

let windows: WindowsBough;
let programs: { stop(): void };
const calls: Call[] = [];
let web: Bun.Server<undefined>;
/** What is served: the path of a URL, and its content. */
const served = new Map<string, Uint8Array<ArrayBuffer>>();

beforeAll(async () => {
  windows = await startWindowsBough();
  mkdirSync(join(windows.drive, "tmp"));
  programs = installPrograms(windows.drive, {
    git(call) {
      calls.push(call);
      return runGit(windows.drive, call);
    },
  });
  web = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url }) => new Response(served.get(new URL(url).pathname) ?? null),
  });
});
afterAll(async () => {
  await Promise.all([windows.stop(), programs.stop(), web.stop(true)]);
});

/** WINEPATH: what comes before the PATH of Windows. */
const environment = { BOUGH_HOME: "D:\\home", WINEPATH: programsPath };

/** Shows the modes, names and targets of all that is copied. */
const list = "FROM base:1\nCOPY . /srv/\nRUN ls -lR /srv | sed -n 's/ .* / /p'\n";
const listing = "-rw-r--r-- Dockerfile\ndrwxr-xr-x bin\nlrwxrwxrwx bin/run\n-rw-r----- run\n";
const entries: RawEntry[] = [
  { name: "Dockerfile", content: list },
  { name: "bin", flag: "5", mode: 0o755 },
  { name: "bin/run", content: "x\n", mode: 0o640 },
  { name: "link", flag: "2", target: "bin/run" },
];

function write(files: Record<string, FileSpec>): void {
  writeFiles(windows.drive, files);
}

function serve(path: string, content: Uint8Array<ArrayBuffer>): string {
  served.set(path, content);
  return new URL(path, web.url).href;
}

test("a second build is cached, and leaves nothing locked", async () => {
  write({
    "app/Dockerfile": "FROM base:1\nCOPY a.txt /srv/\nRUN cat /srv/a.txt\n",
    "app/a.txt": "hello\n",
  });
  const results = ["--iidfile", "id", "--metadata-file", "metadata.json", "--tag", "app:1"];
  const first = await windows.bough(["build", "app", ...results], { environment });
  expect(first).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("hello\n") });
  expect(first.stdout).toContain("app:1");
  expect(existsSync(join(windows.drive, "id")) && existsSync(join(windows.drive, "metadata.json"))).toBe(
    true,
  );
  const second = await windows.bough(["build", "D:\\app", "--tag", "app:1"], { environment });
  expect(second).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("2 of 2 layers cached") });
  expect(readdirSync(join(windows.drive, "home/running-builds"))).toEqual([]);
});

describe("modes and links are those", () => {
  test("that docker gives files of a directory, which have none there", async () => {
    write({ "local/Dockerfile": list, "local/bin/run": { text: "x\n", mode: 0o600 } });
    const { stderr } = await windows.bough(["build", "local"], { environment });
    expect(stderr).toContain("-rwxr-xr-x Dockerfile\ndrwxr-xr-x bin\n-rwxr-xr-x run\n");
  });

  test("of an archive at a URL, also when it is kept", async () => {
    const url = serve("/context.tar", tarOf(entries));
    const first = await windows.bough(["build", url], { environment });
    expect(first.stderr).toContain(listing);
    const second = await windows.bough(["build", url], { environment });
    expect(second).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("2 of 2 layers cached") });
  });

  test("of an archive on standard input", async () => {
    writeFileSync(join(windows.drive, "context.tar"), tarOf(entries));
    const command = "D:\\bough.exe build --no-cache - < context.tar";
    const { stderr } = await windows.shell(command, { environment });
    expect(stderr).toContain(listing);
  });

  test("of a commit", async () => {
    const repositories = join(windows.drive, "repositories");
    makeRepository(join(repositories, "app.git")).commit({
      Dockerfile: `${list}ARG URL\nADD $URL /added/\n${list.split("\n")[2]?.replace("/srv", "/added")}\n`,
      "bin/run": { text: "x\n", mode: 0o755 },
      link: { link: "bin/run" },
    });
    const server = serveRepositories(repositories);
    const url = `${server.url}/app.git`;
    // A place that the git of this machine reaches: Wine itself does not start with such a TMPDIR.
    const command = `set TMPDIR=D:\\tmp&& D:\\bough.exe build --docker ${url} --build-arg URL=${url}`;
    const { stderr } = await windows.shell(command, { environment });
    await server.stop();
    const committed = listing.replace("-rw-r-----", "-rwxr-xr-x");
    expect(stderr.split(committed)).toHaveLength(3);
    // Windows programs need them to reach the network and find their own files.
    expect(calls[0]?.environment).toMatchObject({ SystemRoot: "C:\\windows", HOME: "C:\\users\\root" });
  });
});

describe("an archive is refused if a name in it means something else on Windows:", () => {
  test.each(["..\\..\\..\\escaped", "aux"])("%j", async (name) => {
    const url = serve(
      "/names.tar",
      tarOf([
        { name: "Dockerfile", content: list },
        { name, content: "x" },
      ]),
    );
    const { exitCode, stderr } = await windows.bough(["build", url], { environment });
    expect(stderr).toContain("can't be the name of a file on Windows");
    expect(exitCode).toBe(1);
  });

  test("two that differ in case only", async () => {
    const url = serve(
      "/case.tar",
      tarOf([
        { name: "Dockerfile", content: list },
        { name: "A", content: "1" },
        { name: "a", content: "2" },
      ]),
    );
    const { exitCode, stderr } = await windows.bough(["build", url], { environment });
    expect(stderr).toContain("a can't be written to this machine: a file whose name differs");
    expect(exitCode).toBe(1);
  });
});

test("an ignore file has the client's separator, and only names that are listed can be copied", async () => {
  const Dockerfile = "FROM base:1\nCOPY . /srv/\nRUN cd /srv && find . -type f | sort\n";
  const files = { "secrets/k.pem": "", "secrets/public": "", "out/a.o": "", "secret.txt": "" };
  write({
    "ignoring/Dockerfile": Dockerfile,
    "ignoring/.dockerignore": "secrets\\*.pem\nout\\*.o\nsecret.txt\n",
    "ignoring/Other": "FROM base:1\nCOPY SECRET.TXT /srv/\n",
    ...Object.fromEntries(Object.entries(files).map(([name, text]) => [`ignoring/${name}`, text])),
  });
  const { stderr } = await windows.bough(["build", "ignoring", "--dockerfile", "ignoring\\Dockerfile"], {
    environment,
  });
  expect(stderr).toContain("./.dockerignore\n./Dockerfile\n./Other\n./secrets/public\n[INFO]");
  const other = await windows.bough(["build", "ignoring", "--dockerfile", "ignoring\\Other"], {
    environment,
  });
  expect(other).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("no such file or directory") });
});
