/** What `bough run` takes from this machine: scripts, variable files, directories. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { type BoughOptions, runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { TestEngine } from "../support/engine.ts";

setDefaultTimeout(180_000);

const home = temporaryDirectory();
let service: FakeService;
beforeAll(async () => {
  service = await startFakeService();
  service.state.addImage("base:1");
  const layout = await makeBusyboxLayout(join(home, "layout"));
  await bough(["images", "import", layout, "--tag", "base:1"]);
  mkdirSync(join(home, "src/sub"), { recursive: true });
  symlinkSync("src", join(home, "link"));
  const files = {
    "plain.sh": "echo $# $1 $HOME",
    "own.sh": "#!/usr/bin/env -S bough run -I\necho own $1",
    "strict.sh": "#!/bin/sh -e\nfalse\necho not reached",
    "program.awk": "#!/usr/bin/env -S awk -v given=option -f\nBEGIN { print given, ARGV[1] }",
    "all.env": '# comment\n\nONE=1\n  TWO=a b=c "d"\r\nHERE\nNOWHERE\nEMPTY=\n',
    "bad.env": "ONE=1\nhunter2 hunter3\n",
    "src/a.txt": "of this machine\n",
    "latin.env": Buffer.from("ONE=1\nCITY=Z\xfcrich\n", "latin1"),
    "latin.txt": Buffer.from("base:1\n\xff:1\n", "latin1"),
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, name), text);
});
afterAll(() => service.close());

const bough = (words: readonly string[], options: Partial<BoughOptions> = {}) =>
  runBough(["--local", ...words], {
    workingDirectory: home,
    environment: { BOUGH_HOME: join(home, "state"), HERE: "from here" },
    ...options,
  });

const script: [words: string[], stdout: string, stdin: string | undefined][] = [
  [["-I", "plain.sh", "base:1", "a b", "c"], "2 a b /root\n", undefined],
  [["--use", "base:1", "-I", "plain.sh", "a", "b"], "2 a /root\n", undefined],
  [["--use", "base:1", "-I", "plain.sh", "--", "--flag"], "1 --flag /root\n", undefined],
  [["-I", "own.sh", "base:1", "x"], "own x\n", undefined],
  [["-I", "plain.sh", "base:1", "not read:"], "1 not read: /root\n", "what is piped in"],
  [["-I", "-", "base:1", "x"], "piped x\n", "echo piped $1"],
];
test.each(script)("run -D %j", async (words, stdout, stdin) => {
  const ended = await bough(["run", "-D", ...words], stdin === undefined ? {} : { stdin });
  expect(ended).toMatchObject({ exitCode: 0, stdout });
});

test("a session's history names a script by its file", async () => {
  await bough(["-S", "scripts", "run", "-I", "plain.sh", "base:1", "a b"]);
  await bough(["-S", "scripts", "run", "-I", "-"], { stdin: "touch /piped" });
  const { stdout } = await bough(["-S", "scripts", "session", "show"]);
  expect(stdout).toMatch(/ run .* --script - .*main/);
  expect(stdout).not.toContain("sh -s");
});

test("run returns a script's exit code, and uses the options in its first line", async () => {
  expect(await bough(["run", "-D", "-I", "strict.sh", "base:1"])).toMatchObject({ exitCode: 1, stdout: "" });
  const ended = await bough(["run", "-D", "-I", "program.awk", "base:1", "a b"]);
  expect(ended).toMatchObject({ exitCode: 0, stdout: "option a b\n" });
});

test("--env-file reads the format of docker, and -e overrides it", async () => {
  const words = ["run", "-D", "--env-file", "all.env", "-e", "ONE=first", "base:1", "env"];
  const { stdout } = await bough(words);
  const seen = stdout.split("\n").filter((line) => /^(ONE|TWO|HERE|NOWHERE|EMPTY)/.test(line));
  expect(seen.sort()).toEqual(["EMPTY=", "HERE=from here", "ONE=first", 'TWO=a b=c "d"']);
});

test("--volume mounts a directory, which is writable unless :ro is given and not part of the result", async () => {
  const mounted = ["-v", "src:/w", "-v", "link:/r:ro", "-v", "src/a.txt:/etc/lone"];
  const command = "cat a.txt /r/a.txt /etc/lone; echo new > new; echo no > /r/no || echo kept";
  const ended = await bough(["-S", "v", "run", ...mounted, "-C", "/w", "base:1", "sh", "-c", command]);
  expect(ended.stdout).toBe("of this machine\nof this machine\nof this machine\nkept\n");
  expect(readFileSync(join(home, "src/new"), "utf8")).toBe("new\n");
  const { stdout } = await bough(["-S", "v", "ls", "-q", "/"]);
  expect(stdout.split("\n")).not.toContain("w");
});

test.each([
  [["run", "-I", "none.sh", "base:1"], "cannot read --script none.sh: no such file or directory"],
  [["run", "-I", "-", "base:1"], "--script - reads standard input, and nothing is piped in"],
  [["run", "-I", "plain.sh", "-s", "base:1"], "--script cannot be used with --shell"],
  [["run", "--env-file", "none.env", "base:1", "env"], "cannot read --env-file none.env"],
  [
    ["run", "--env-file", "bad.env", "base:1", "env"],
    "--env-file bad.env: line 2 does not begin with a variable name",
  ],
  [
    ["run", "--env-file", "latin.env", "base:1", "env"],
    "cannot read --env-file latin.env: line 2 is not UTF-8 text",
  ],
  [["run", "--each", "latin.txt", "--", "env"], "--each latin.txt: line 2 is not UTF-8 text"],
  [["run", "-v", "src", "base:1", "ls"], '--volume takes DIR:PATH[:ro], not "src"'],
  [["run", "-v", "src:w", "base:1", "ls"], '--volume src:w: "w" is not an absolute path in the image'],
  [["run", "-v", "src:/w:z", "base:1", "ls"], '--volume src:/w:z: unknown option "z": expected ro or rw'],
])("%j", async (words, message) => {
  const ended = await bough(words);
  expect(ended.exitCode).toBe(2);
  expect(ended.stderr).toContain(message);
  expect(ended.stderr).not.toContain("hunter");
});

test("--volume refuses a missing directory and a remote service", async () => {
  const missing = await bough(["run", "-D", "-v", "nowhere:/w", "base:1", "ls"]);
  expect(missing.exitCode).toBe(1);
  expect(missing.stderr).toContain(`cannot mount ${home}/nowhere at /w: there is no such file or directory`);
  const elsewhere = await runBough(["run", "-D", "-v", "src:/w", "base:1", "ls"], {
    workingDirectory: home,
    environment: { BOUGH_HOME: join(home, "remote"), CONTREE_URL: service.url, CONTREE_TOKEN: "t0ken-t0ken" },
  });
  expect(elsewhere).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining(
      "cannot mount directories of this machine\n--file DIR:PATH copies it into the image",
    ),
  });
});

test("a served engine does not mount directories of its machine for clients", async () => {
  const engine = await TestEngine.open({ isServer: true });
  try {
    const mounts = [{ type: "host", source: "/", target: "/w" }];
    const response = await engine.fetch("POST", "/v1/instances", { image: "tag:a:1", command: "ls", mounts });
    expect(response.status).toBe(403);
    const { extensions } = await engine.json<{ extensions: string[] }>("GET", "/v1/whoami");
    expect(extensions).not.toContain("host-mounts");
  } finally {
    await engine.close();
  }
});

/** Gives these parts, some of them late, and then nothing more. `endless`: the last one again and again. */
async function* input(parts: readonly string[], end: "ends" | "stays open" | "endless") {
  for (const part of parts) {
    yield Buffer.from(part);
    await Bun.sleep(150);
  }
  while (end === "endless") {
    yield Buffer.alloc(65_536, parts.at(-1));
    await Bun.sleep(1);
  }
  if (end === "stays open") await new Promise(() => {});
}

test.each([
  ["stays open, and is not read", input([], "stays open"), "echo done", "done\n"],
  ["stays open after what is read", input(["a\n"], "stays open"), "read x; echo got $x", "got a\n"],
  ["comes in parts", input(["a\n", "b", "c\n"], "ends"), "cat; echo end", "a\nbc\nend\n"],
  ["never ends", input(["y\n"], "endless"), "head -n 3", "y\ny\ny\n"],
  ["ends at once", input([], "ends"), "cat; echo end", "end\n"],
])("piped input that %s", async (_, stdin, command, stdout) => {
  const ended = await bough(["run", "base:1", "sh", "-c", command], { stdin });
  expect(ended).toMatchObject({ exitCode: 0, stdout });
});
