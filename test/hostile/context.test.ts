/** Build contexts that nobody would make who means well. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { BoughError } from "../../src/errors.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { type BoughOptions, runBough, temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { writeFiles } from "../support/files.ts";
import { steering, wildCharacters } from "./tame.ts";

let context: string;
let service: FakeService;
const open: { close(): unknown }[] = [];
beforeEach(async () => {
  context = temporaryDirectory();
  service = await startFakeService();
  service.state.addImage("base:1");
});
afterEach(async () => {
  for (const server of open.splice(0)) server.close();
  await service.close();
});

async function build(dockerfile: string, words: string[] = [], options: Partial<BoughOptions> = {}) {
  writeFileSync(join(context, "Dockerfile"), dockerfile);
  const given = ["--url", service.url, "--token", "t0ken-t0ken", "-L", "debug", "build", ".", ...words];
  const ended = await runBough(given, {
    workingDirectory: context,
    environment: { BOUGH_HOME: join(context, "..", "state") },
    ...options,
  });
  return { ...ended, shown: ended.stderr + ended.stdout };
}

/** The text of what was sent, by path in the image. */
function sent(): Record<string, string> {
  const byId = new Map([...service.state.files.values()].map(({ uuid, content }) => [uuid, content]));
  const files = service.state.instances.flatMap((instance) => Object.entries(instance.files ?? {}));
  return Object.fromEntries(
    files.map(([path, { uuid }]) => [path, Buffer.from(byId.get(uuid) ?? []).toString()]),
  );
}

describe("links that lead out of the context", () => {
  const secret = "what is outside";
  let outside: string;
  beforeEach(() => {
    outside = temporaryDirectory();
    writeFiles(outside, { secret, "dir/secret": secret });
  });

  test.each([
    ["a file named outright", "COPY link /x", (): string => join(outside, "secret")],
    ["a file by way of a directory", "COPY link/secret /x", () => outside],
    ["a relative one", "COPY link /x", () => `../${outside.split("/").at(-1)}/secret`],
    ["a pattern below one", "COPY link/* /x/", () => outside],
    ["with --parents", "COPY --parents link/secret /x/", () => outside],
    ["ADD", "ADD link /x", () => join(outside, "secret")],
    ["the root", "COPY link/etc/passwd /x", () => "/"],
    ["the process's own files", "COPY link /x", () => "/proc/self/environ"],
  ])("bring nothing from there: %s", async (_, line, target) => {
    symlinkSync(target(), join(context, "link"));
    const { exitCode, shown } = await build(`FROM base:1\n${line}\nRUN use it\n`);
    expect(JSON.stringify(sent())).not.toContain(secret);
    expect(service.state.files.size).toBe(0);
    // A pattern may match nothing, and this one does.
    expect(exitCode === 0).toBe(line.includes("*"));
    expect(shown).not.toContain("bough itself failed");
  });

  test("and are below a directory stay links", async () => {
    mkdirSync(join(context, "tree"));
    symlinkSync(outside, join(context, "tree/link"));
    writeFileSync(join(context, "tree/file"), "inside");
    const { exitCode } = await build("FROM base:1\nCOPY tree /tree\nRUN use it\n");
    expect(exitCode).toBe(0);
    expect(sent()).toEqual({ "/tree/file": "inside" });
  });

  test("as the Dockerfile or the ignore file itself are the user's own affair, and are named in errors", async () => {
    symlinkSync(join(outside, "missing"), join(context, ".dockerignore"));
    const { shown } = await build("FROM base:1\nRUN true\n");
    expect(shown).not.toContain("bough itself failed");
  });
});

test.each([
  ["COPY ../.. /x", 0],
  ["COPY ../../etc/passwd /x", 1],
  ["COPY a/../../../etc/passwd /x", 1],
  ["COPY /../../etc/passwd /x", 1],
  ["COPY ..\\/..\\/etc/passwd /x", 1],
  ["COPY $UP/etc/passwd /x", 1],
  ["ADD ../../../../../../etc/passwd /x", 1],
  ["COPY --parents ./../etc/passwd /x/", 1],
  ["COPY ../*/passwd /x/", 0],
])("%s does not leave the context", async (line, exitCode) => {
  writeFiles(context, { "a/file": "a" });
  const ended = await build(`FROM base:1\nARG UP=../../../..\n${line}\nRUN use it\n`);
  expect(ended.exitCode).toBe(exitCode);
  expect(JSON.stringify(sent())).not.toContain("root:");
  expect(ended.shown).not.toContain("bough itself failed");
});

test("pipes, sockets and devices are passed over, and never opened", async () => {
  writeFiles(context, { "tree/file": "a" });
  Bun.spawnSync(["mkfifo", join(context, "tree/pipe")]);
  Bun.spawnSync(["mknod", join(context, "tree/zero"), "c", "1", "5"]);
  Bun.spawnSync(["mknod", join(context, "tree/disk"), "b", "7", "200"]);
  const server = createServer().listen(join(context, "tree/socket"));
  open.push(server);
  while (!existsSync(join(context, "tree/socket"))) await Bun.sleep(1);
  const { exitCode, shown } = await build("FROM base:1\nCOPY tree /tree\nRUN use it\n");
  expect(exitCode).toBe(0);
  expect(sent()).toEqual({ "/tree/file": "a" });
  for (const name of ["pipe", "zero", "disk", "socket"]) expect(shown).toContain(`tree/${name}`);
});

test.each(["pipe", "zero"])("one that is named outright is an error: %s", async (name) => {
  Bun.spawnSync(["mkfifo", join(context, "pipe")]);
  Bun.spawnSync(["mknod", join(context, "zero"), "c", "1", "5"]);
  const { exitCode, shown } = await build(`FROM base:1\nCOPY ${name} /x\nRUN use it\n`);
  expect(exitCode).toBe(1);
  expect(shown).toContain(name);
  expect(shown).not.toContain("bough itself failed");
});

describe("a Dockerfile that is not a file", () => {
  test("is not waited for where the context brings it", async () => {
    Bun.spawnSync(["mkfifo", join(context, "Dockerfile")]);
    const words = ["--url", service.url, "build", context];
    const { exitCode, stderr } = await runBough(words, { workingDirectory: context });
    expect(exitCode).toBe(2);
    expect(stderr).toContain("cannot read the Dockerfile");
    expect(stderr).toContain("it is not a regular file");
  });

  test("may be a pipe where it is named; an interruption ends the waiting", async () => {
    const pipe = join(context, "pipe");
    Bun.spawnSync(["mkfifo", pipe]);
    const writer = Bun.spawn(["sh", "-c", `printf 'FROM base:1\\nRUN from a pipe\\n' > '${pipe}'`]);
    expect((await build("", ["--dockerfile", pipe])).exitCode).toBe(0);
    await writer.exited;
    expect(service.state.instances.map(({ command }) => command)).toEqual(["from a pipe"]);
    const interrupt = new AbortController();
    const waiting = build("", ["--dockerfile", pipe], { signal: interrupt.signal });
    await Bun.sleep(50);
    interrupt.abort(new BoughError("interrupted", { kind: "interrupted" }));
    expect((await waiting).exitCode).toBe(130);
    // Whoever has opened the other end for reading waits for a writer.
    Bun.spawnSync(["sh", "-c", `: > '${pipe}'`]);
  });

  test.each(["/dev/zero", "/proc", "missing"])("is an error: %s", async (path) => {
    const { exitCode, shown } = await build("", ["--dockerfile", path]);
    expect(exitCode).toBe(2);
    expect(shown).toContain(`cannot read the Dockerfile ${path}: `);
  });
});

/** Root may read what its mode forbids; not so without these. */
const overrides = "-dac_override,-dac_read_search";
const withoutOverride = ["setpriv", `--bounding-set=${overrides}`, `--inh-caps=${overrides}`];

describe("what may not be read", () => {
  test.each([
    ["a file", "locked", 0o000],
    ["a directory", "dir", 0o000],
    ["a directory without its search bit", "dir", 0o644],
  ])("%s is named, and nothing is built", async (_, name, mode) => {
    writeFiles(context, { Dockerfile: "FROM base:1\nCOPY . /x\nRUN use it\n", locked: "x", "dir/file": "x" });
    chmodSync(join(context, name), mode);
    const child = Bun.spawn([...withoutOverride, compileBough(), "--url", service.url, "build", context], {
      env: { PATH: process.env.PATH, HOME: process.env.HOME, BOUGH_HOME: temporaryDirectory() },
      stderr: "pipe",
      stdout: "ignore",
    });
    const stderr = await new Response(child.stderr).text();
    chmodSync(join(context, name), 0o755);
    expect(stderr).toMatch(new RegExp(`cannot read .*${name}.*: permission denied`));
    expect(await child.exited).toBe(1);
    expect(service.state.instances).toEqual([]);
  });
});

describe("names that would steer a terminal", () => {
  const names = Object.values(steering).map((text) => text.replaceAll("/", "_"));

  test.each(["plain", "json"])(
    "reach it in no log line, and the image as they are (--progress %s)",
    async (progress) => {
      for (const name of names) writeFileSync(join(context, name), "x".repeat(10));
      for (const name of names) Bun.spawnSync(["mkfifo", join(context, `${name}.pipe`)]);
      writeFileSync(join(context, ".dockerignore"), "*.ignored\n");
      const { exitCode, shown } = await build("FROM base:1\nCOPY . /tree/\nRUN use it\n", [
        "--progress",
        progress,
        "--explain",
      ]);
      expect(exitCode).toBe(0);
      expect(wildCharacters(shown)).toEqual([]);
      expect(Object.keys(sent())).toEqual(expect.arrayContaining(names.map((name) => `/tree/${name}`)));
      writeFileSync(join(context, names[0] ?? ""), "changed");
      const again = await build("FROM base:1\nCOPY . /tree/\nRUN use it\n", [
        "--progress",
        progress,
        "--explain",
      ]);
      expect(wildCharacters(again.shown)).toEqual([]);
    },
  );

  test.each(Object.entries(steering))("in errors: %s", async (_, text) => {
    const name = text.replaceAll("/", "_").replaceAll("\n", " ");
    const shown: string[] = [];
    symlinkSync("/nowhere", join(context, "out"));
    for (const dockerfile of [
      `FROM base:1\nCOPY ${JSON.stringify([`${name}.missing`, "/x"])}\n`,
      `FROM base:1\nCOPY missing ${name}\n`,
      `FROM ${name}\n`,
      `FROM base:1\nCOPY --chown=${name} Dockerfile /x\nRUN true\n`,
      `FROM base:1\nCOPY --chmod=${name} Dockerfile /x\n`,
      `FROM base:1\n${name} x\n`,
      `FROM base:1\nUSER ${name}\nCOPY out /x\n`,
      `FROM base:1\nADD http://127.0.0.1:1/${name} /x\n`,
      `FROM base:1\nADD http://${name}/ /x\n`,
      `# syntax=${name}\n# escape=${name}\nFROM base:1\n`,
      `FROM base:1\nRUN --mount=type=${name} true\n`,
      `FROM base:1\nENV ${name}\nWORKDIR ${name}\nRUN echo ${name}\n`,
    ]) {
      const clock = createManualClock((milliseconds) => milliseconds < 15_000);
      const ended = await build(dockerfile, [], { clock });
      expect(ended.shown).not.toContain("bough itself failed");
      shown.push(ended.shown);
    }
    for (const words of [
      ["--dockerfile", `${name}.missing`],
      ["--tag", name],
      ["--build-arg", `${name}=1`],
      ["--build-arg", name],
      [`--${name}`],
      ["--progress", name],
      ["--timeout", name],
      ["--metadata-file", `${name}/x/y`],
    ]) {
      shown.push((await build("FROM base:1\nRUN true\n", words)).shown);
    }
    expect(wildCharacters(shown.join("\n"))).toEqual([]);
  });

  test("in what the service says", async () => {
    const said = Object.values(steering).join(" ");
    service.intercept = ({ method, url }) =>
      method === "POST" && url.endsWith("/instances")
        ? Response.json({ error: said }, { status: 422 })
        : undefined;
    expect(wildCharacters((await build("FROM base:1\nRUN true\n")).shown)).toEqual([]);
    service.intercept = undefined;
    await service.close();
    service = await startFakeService({ run: () => ({ error: said }), importError: () => said });
    service.state.addImage("base:1");
    expect(wildCharacters((await build("FROM base:1\nRUN true\n")).shown)).toEqual([]);
    expect(wildCharacters((await build("FROM other:1\nRUN true\n")).shown)).toEqual([]);
  });
});
