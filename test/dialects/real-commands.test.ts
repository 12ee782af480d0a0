/** Builds whose commands really run, on the engine behind a front that lets only the specification's six calls through. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

const { engine, base } = await openSharedEngine();
const specified = ["image", "command", "args", "shell", "env", "cwd", "files", "timeout"];
let started: { command: string; args?: string[] }[] = [];

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  idleTimeout: 0,
  async fetch(request) {
    const { pathname } = new URL(request.url);
    const call = `${request.method} ${pathname}`;
    const isSpecified =
      ["POST /v1/images/import", "POST /v1/instances", "POST /v1/files"].includes(call) ||
      /^GET \/v1\/operations\/[^/]+$/.test(call) ||
      /^PATCH \/v1\/images\/[^/]+\/tag$/.test(call);
    if (!isSpecified) return Response.json({ error: "not found" }, { status: 404 });
    if (call !== "POST /v1/instances") return engine.engine.fetch(request);
    const body = (await request.json()) as (typeof started)[number];
    const unknown = Object.keys(body).find((name) => !specified.includes(name));
    if (unknown !== undefined) return Response.json({ error: `unknown field ${unknown}` }, { status: 400 });
    started.push(body);
    return engine.engine.fetch(
      new Request(request.url, { method: "POST", body: JSON.stringify({ ...body, disposable: false }) }),
    );
  },
});
afterAll(() => server.stop(true));

async function build(
  dockerfile: string,
  files: Record<string, FileSpec> = { "a.txt": "a\n" },
  options: readonly string[] = [],
) {
  const directory = temporaryDirectory();
  const context = join(directory, "context");
  mkdirSync(context);
  writeFiles(context, { ...files, Dockerfile: `FROM ${base}\n${dockerfile}` });
  started = [];
  const words = [
    "--url",
    `http://127.0.0.1:${server.port}`,
    "--token",
    "tok-5ecret",
    "build",
    ".",
    ...options,
  ];
  return runBough(words, {
    workingDirectory: context,
    environment: { BOUGH_HOME: join(directory, "state") },
  });
}

const accounts = `RUN echo 'app:x:77:78::/:/bin/sh' >> /etc/passwd; echo 'grp:x:79:' >> /etc/group\n`;
const show = (paths: string) => `RUN stat -c '%u:%g %a %n' ${paths}\n`;

test("files get owners by name", async () => {
  const files = Object.fromEntries(
    Array.from({ length: 500 }, (_, index) => [`many/${"n".repeat(70)}${index}`, ""]),
  );
  const dockerfile = [
    accounts,
    "COPY --chown=app:grp --chmod=4755 a.txt /opt/tool/\n",
    "COPY --chown=app a.txt /opt/c\n",
    "COPY --chown=:grp a.txt /opt/b\n",
    "COPY --chown=app:grp many /many\n",
    show(`/opt/tool /opt/tool/a.txt /opt/c /opt/b /many`),
    "RUN find /many ! -user app | wc -l; ls -d /.bough* || true\n",
  ].join("");
  const { stderr, exitCode } = await build(dockerfile, { "a.txt": "a\n", ...files });
  expect(exitCode).toBe(0);
  expect(stderr).toContain(
    "77:79 755 /opt/tool\n77:79 4755 /opt/tool/a.txt\n77:78 644 /opt/c\n0:79 644 /opt/b\n77:79 755 /many\n",
  );
  expect(stderr).toContain("stdout:\n0\n");
});

test("an owner that the image lacks is an error of its line", async () => {
  const { stderr, exitCode } = await build("COPY --chown=nobody-here a.txt /opt/\nRUN true\n");
  expect(exitCode).toBe(1);
  expect(stderr).toContain("[ERROR] Dockerfile:2: cannot put the staged files in place: chown: unknown user");
  expect(stderr).toContain("Create the user and its group in a RUN before this line, or write numbers.");
});

test("a command runs as a user by number, whether the image has it or not", async () => {
  const show = "RUN echo $(id -u) $(id -g) $A $PWD; test ! -t 0; touch /tmp/$(id -u)\n";
  const { stderr, exitCode } = await build(
    `${accounts}ENV A="b c"\nWORKDIR /srv\nUSER 77\n${show}USER 77:79\n${show}USER 1234\n${show}USER 1234:5\nRUN ["id", "-g"]\nUSER 0\n${show}USER root\nRUN ls -a / | grep bough; echo $?; tail -n 1 /etc/passwd; stat -c %u /tmp/77 /tmp/1234\n`,
  );
  expect(stderr.match(/(?<=stdout:\n)[^[]+/g)).toEqual([
    "77 78 b c /srv\n",
    "77 79 b c /srv\n",
    "1234 0 b c /srv\n",
    "5\n",
    "0 0 b c /srv\n",
    "1\napp:x:77:78::/:/bin/sh\n77\n1234\n",
  ]);
  expect(exitCode).toBe(0);
});

test.each(["77", "app"])(
  "ENV, and WORKDIR, COPY and RUN after USER %s, run no command of bough's own",
  async (user) => {
    const dockerfile = `${accounts}ENV A=1 B=$A\nUSER ${user}\nWORKDIR /srv\nCOPY a.txt .\nRUN cat a.txt; id -u; pwd\n`;
    const { stderr, exitCode } = await build(dockerfile);
    expect(exitCode).toBe(0);
    expect(stderr).toContain("so /srv belongs to root if the image lacks it: make it in a RUN before USER\n");
    expect(stderr).toContain("stdout:\na\n77\n/srv\n");
    expect(started).toHaveLength(2);
  },
);

/**
 * All commands that no instruction asks for, by what needs them. Everything else goes without: the fields of the next RUN can say
 * it, or nobody would miss it.
 */
const placing = "(makes the staged directories and links)";
const ownCommands: readonly (readonly [what: string, dockerfile: string, commands: readonly string[]])[] = [
  ["a file", "COPY a.txt /new/way/a", []],
  ["a file with an owner", "COPY --chown=5:6 a.txt /tmp/a", []],
  ["a file with an owner, on a new way", "COPY --chown=5:6 --chmod=600 a.txt /new/way/a", []],
  ["several files with owners", "COPY --chown=5 a.txt a.sh /new/\nADD --chown=7:8 a.txt /opt/", []],
  ["a directory", "COPY tree /new", []],
  ["a here-document", "COPY <<END /new/a\ntext\nEND", []],
  ["a WORKDIR", "WORKDIR /new/work\nCOPY a.txt .", []],
  ["a WORKDIR of a user", "USER 5\nWORKDIR /new/work\nCOPY a.txt .", []],
  ["a user by number", "USER 5:6", []],
  ["a user by name", "USER nobody", []],
  ["variables", "ARG B=1\nENV A=$B C=$UNKNOWN", []],
  ["a cache mount", "RUN --mount=type=cache,target=/cache true", []],
  ["a directory with an owner", "COPY --chown=5:6 tree /new", [placing]],
  ["a file whose owner is a name", "COPY --chown=nobody a.txt /a", [placing]],
  ["a link", "COPY links /new", [placing]],
  ["an empty directory", "COPY empty /new", [placing]],
  ["a variable of the image", "ENV PATH=/opt/bin:$PATH", ["(asks for the image's variables)"]],
  ["a user and a group by name", "USER nobody:root", ["(asks for the image's users)"]],
];

test.each(ownCommands)("%s: the commands of bough's own", async (_, dockerfile, commands) => {
  const files = {
    ...{ "a.txt": "a\n", "a.sh": "", "tree/a/b": "b\n" },
    "empty/a": "directory/",
    "links/a": { link: "b" },
  } as const;
  const { stderr, exitCode } = await build(`${dockerfile}\nRUN true\n`, files);
  expect({ exitCode, own: ownIn(stderr) }).toEqual({ exitCode: 0, own: [...commands] });
});

test("the files of a COPY without a RUN after it get a command of bough's own", async () => {
  const { stderr } = await build("RUN true\nCOPY a.txt /a\nWORKDIR /new\n");
  expect(ownIn(stderr)).toEqual(["(the staged files)"]);
});

test("files keep their owners without it; directories on the way are root's, which --docker says once", async () => {
  const dockerfile = `COPY --chown=5:6 --chmod=640 a.txt /new/way/a\nCOPY --chown=7 a.txt /other/a\n${show("/new /new/way /new/way/a /other /other/a")}`;
  const expected = "0:0 755 /new\n0:0 755 /new/way\n5:6 640 /new/way/a\n0:0 755 /other\n7:7 644 /other/a\n";
  for (const [options, warnings] of [
    [[], 0],
    [["--docker"], 1],
  ] as const) {
    const { stderr, exitCode } = await build(dockerfile, undefined, options);
    expect(exitCode).toBe(0);
    expect(stderr).toContain(expected);
    expect(stderr.split("so /new belongs to root if the image lacks it")).toHaveLength(1 + warnings);
    expect(ownIn(stderr)).toEqual([]);
  }
});

function ownIn(stderr: string): string[] {
  return stderr.match(/(?<=bough spawned op=\S+ )\(.*\)/g) ?? [];
}
