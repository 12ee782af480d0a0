/** Malicious build contexts. */
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
import { controlCharacters, hostileNames } from "./tame.ts";

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

/** Returns the texts of the files that were sent, by path in the image. */
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
    ["a link to a file", "COPY link /x", (): string => join(outside, "secret")],
    ["a file below a link to a directory", "COPY link/secret /x", () => outside],
    ["a relative link", "COPY link /x", () => `../${outside.split("/").at(-1)}/secret`],
    ["a pattern below a link", "COPY link/* /x/", () => outside],
    ["with --parents", "COPY --parents link/secret /x/", () => outside],
    ["ADD of a link", "ADD link /x", () => join(outside, "secret")],
    ["a link to the root", "COPY link/etc/passwd /x", () => "/"],
    ["a link into /proc/self", "COPY link /x", () => "/proc/self/environ"],
  ])("copy nothing from outside: %s", async (_, line, target) => {
    symlinkSync(target(), join(context, "link"));
    const { exitCode, shown } = await build(`FROM base:1\n${line}\nRUN use it\n`);
    expect(JSON.stringify(sent())).not.toContain(secret);
    expect(service.state.files.size).toBe(0);
    // A pattern may match nothing, and this one does.
    expect(exitCode === 0).toBe(line.includes("*"));
    expect(shown).not.toContain("bough itself failed");
  });

  test("stay links in a copied directory", async () => {
    mkdirSync(join(context, "tree"));
    symlinkSync(outside, join(context, "tree/link"));
    writeFileSync(join(context, "tree/file"), "inside");
    const { exitCode } = await build("FROM base:1\nCOPY tree /tree\nRUN use it\n");
    expect(exitCode).toBe(0);
    expect(sent()).toEqual({ "/tree/file": "inside" });
  });

  test("count as no .dockerignore if they are dangling", async () => {
    symlinkSync(join(outside, "missing"), join(context, ".dockerignore"));
    writeFileSync(join(context, "file"), "inside");
    const { exitCode } = await build("FROM base:1\nCOPY file /file\nRUN true\n");
    expect(exitCode).toBe(0);
    expect(sent()).toEqual({ "/file": "inside" });
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

test("pipes, sockets and devices in a copied directory are skipped, named and never opened", async () => {
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

test.each(["pipe", "zero"])("COPY of a special file itself is an error: %s", async (name) => {
  Bun.spawnSync(["mkfifo", join(context, "pipe")]);
  Bun.spawnSync(["mknod", join(context, "zero"), "c", "1", "5"]);
  const { exitCode, shown } = await build(`FROM base:1\nCOPY ${name} /x\nRUN use it\n`);
  expect(exitCode).toBe(1);
  expect(shown).toContain(name);
  expect(shown).not.toContain("bough itself failed");
});

describe("a Dockerfile that is not a file", () => {
  test("is an error at once if it is a pipe in the context", async () => {
    Bun.spawnSync(["mkfifo", join(context, "Dockerfile")]);
    const words = ["--url", service.url, "build", context];
    const { exitCode, stderr } = await runBough(words, { workingDirectory: context });
    expect(exitCode).toBe(2);
    expect(stderr).toContain("cannot read the Dockerfile");
    expect(stderr).toContain("it is not a regular file");
  });

  test("may be a pipe with --dockerfile, and an interrupt ends the wait for a writer", async () => {
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
    // A thread still waits for a writer in open(2).
    Bun.spawnSync(["sh", "-c", `: > '${pipe}'`]);
  });

  test.each(["/dev/zero", "/proc", "missing"])("is an error: %s", async (path) => {
    const { exitCode, shown } = await build("", ["--dockerfile", path]);
    expect(exitCode).toBe(2);
    expect(shown).toContain(`cannot read the Dockerfile ${path}: `);
  });
});

/** Without these capabilities, file modes restrict root, too. */
const overrides = "-dac_override,-dac_read_search";
const withoutOverride = ["setpriv", `--bounding-set=${overrides}`, `--inh-caps=${overrides}`];

describe("without permission to read", () => {
  test.each([
    ["a file", "locked", 0o000],
    ["a directory", "dir", 0o000],
    ["a directory without its search bit", "dir", 0o644],
  ])("%s is named in the error, and nothing runs", async (_, name, mode) => {
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

describe("control characters and forged log lines", () => {
  const names = Object.values(hostileNames).map((text) => text.replaceAll("/", "_"));

  test.each(["plain", "json"])(
    "in file names are escaped in the log and kept in the image (--progress %s)",
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
      expect(controlCharacters(shown)).toEqual([]);
      expect(Object.keys(sent())).toEqual(expect.arrayContaining(names.map((name) => `/tree/${name}`)));
      writeFileSync(join(context, names[0] ?? ""), "changed");
      const again = await build("FROM base:1\nCOPY . /tree/\nRUN use it\n", [
        "--progress",
        progress,
        "--explain",
      ]);
      expect(controlCharacters(again.shown)).toEqual([]);
    },
  );

  test.each(Object.entries(hostileNames))(
    "in Dockerfiles and options are escaped in errors: %s",
    async (_, text) => {
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
      expect(controlCharacters(shown.join("\n"))).toEqual([]);
    },
  );

  test("in the service's errors are escaped", async () => {
    const said = Object.values(hostileNames).join(" ");
    service.intercept = ({ method, url }) =>
      method === "POST" && url.endsWith("/instances")
        ? Response.json({ error: said }, { status: 422 })
        : undefined;
    expect(controlCharacters((await build("FROM base:1\nRUN true\n")).shown)).toEqual([]);
    service.intercept = undefined;
    await service.close();
    service = await startFakeService({ run: () => ({ error: said }), importError: () => said });
    service.state.addImage("base:1");
    expect(controlCharacters((await build("FROM base:1\nRUN true\n")).shown)).toEqual([]);
    expect(controlCharacters((await build("FROM other:1\nRUN true\n")).shown)).toEqual([]);
  });
});
