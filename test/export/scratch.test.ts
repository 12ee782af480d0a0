/** Temporary files and directories, and which of those left behind are removed by later processes. */
import { expect, test } from "bun:test";
import { chownSync, existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openScratch } from "../../src/cli/process/scratch.ts";
import { lockFile } from "../../src/lock-file.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";

const id = crypto.randomUUID();
const program = `import { openScratch } from ${JSON.stringify(join(import.meta.dir, "../../src/cli/process/scratch.ts"))};
  const { path } = openScratch("push", process.env);
  await Bun.write(path + "/tree/file", "x");
  console.log(path);
  await Bun.sleep(60_000);`;

test.each<[string, string[]]>([
  ["beside this one", []],
  ["in another PID namespace", ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount"]],
])("the directory of a process %s stays until that is killed", async (_, prefix) => {
  const directory = temporaryDirectory();
  await using child = Bun.spawn([...prefix, process.execPath, "-e", program], {
    env: { TMPDIR: directory },
    stdout: "pipe",
  });
  const { value } = await child.stdout.getReader().read();
  const path = new TextDecoder().decode(value).trim();
  {
    using own = openScratch("git", { TMPDIR: directory });
    mkdirSync(join(own.path, "tree"), { recursive: true });
    expect(existsSync(join(path, "tree/file"))).toBe(true);
    expect(readdirSync(directory)).toHaveLength(2);
  }
  child.kill("SIGKILL");
  await child.exited;
  // The kernel ends the namespace's other processes a moment later.
  for (let attempt = 0; attempt < 500 && existsSync(path); attempt++) {
    openScratch("git", { TMPDIR: directory })[Symbol.dispose]();
    await Bun.sleep(10);
  }
  expect(readdirSync(directory)).toEqual([]);
});

test.each<[string, (path: string) => void, number, boolean]>([
  ["a directory that is locked", (path) => void lockFile(join(path, "lock")), 2, true],
  ["a directory without a lock", (path) => writeFileSync(join(path, "files"), ""), 0, true],
  [
    "an old directory without a lock, of an earlier version",
    (path) => mkdirSync(join(path, "tree")),
    2,
    false,
  ],
  ["an empty directory", () => {}, 0, false],
])("%s", (_, fill, days, stays) => {
  const directory = temporaryDirectory();
  const path = join(directory, `bough-git-${id}`);
  mkdirSync(path);
  fill(path);
  const then = new Date(Date.now() - days * 24 * 60 * 60 * 1000 - 1000);
  utimesSync(path, then, then);
  openScratch("export", { TMPDIR: directory })[Symbol.dispose]();
  expect(existsSync(path)).toBe(stays);
});

test.each([
  ["of another program", "bough-gitea", 0],
  ["of another kind", `bough-engine-${id}`, 0],
  ["of another user", `bough-git-${id}`, 1],
])("an old directory %s stays", (_, name, user) => {
  const directory = temporaryDirectory();
  const path = join(directory, name);
  mkdirSync(path);
  writeFileSync(join(path, "lock"), "");
  chownSync(path, user, user);
  utimesSync(path, new Date(0), new Date(0));
  openScratch("git", { TMPDIR: directory })[Symbol.dispose]();
  expect(existsSync(path)).toBe(true);
});

test("where /var/tmp cannot be written to, the place is in bough's own directory", () => {
  const own = join(temporaryDirectory(), "state");
  using scratch = openScratch("push", { BOUGH_HOME: own }, "/none");
  expect(scratch.path.startsWith(`${own}/bough-push-`)).toBe(true);
});

test.each([
  ["none", "no such file or directory"],
  ["file", "a part of the path is not a directory"],
])("a TMPDIR that is %s is named in the error of a push", async (name, reason) => {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, "file"), "");
  const environment = { BOUGH_HOME: join(directory, "state"), TMPDIR: join(directory, name) };
  const bough = (...words: string[]) =>
    runBough(["--local", ...words], { workingDirectory: directory, environment });
  writeFileSync(join(directory, "Dockerfile"), "FROM scratch\nLABEL a=b\nCOPY Dockerfile /\n");
  expect(await bough("build", "--docker", "--tag", "127.0.0.1:1/app:1", "--push")).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining(
      `cannot make a temporary directory in ${environment.TMPDIR}: ${reason}\nTMPDIR=DIRECTORY names another place`,
    ),
  });
});
