/** Bake files and compose files of others: what they may read on this machine, and for how long. */
import { beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";

const canary = "CANARY";
let outside: string;
let project: string;
beforeEach(() => {
  const directory = temporaryDirectory();
  outside = join(directory, "outside");
  project = join(directory, "project");
  mkdirSync(project);
  writeFiles(outside, {
    credentials: `TOKEN=${canary}\nsecret_key = ${canary}\n`,
    key: `-----BEGIN PRIVATE KEY-----\n${canary}\n-----END PRIVATE KEY-----\n`,
    "compose.yaml": `services: {base: {build: {context: ., args: {K: ${canary}}}}}\n`,
    "docker-bake.json": `{"target": {"default": {"args": {"K": "${canary}"}}}}`,
    "docker-bake.hcl": `target "default" { args = { K = "${canary}" } }`,
  });
  writeFileSync(join(project, "Dockerfile"), "FROM scratch\n");
});

const bake = (...words: string[]) => runBough(["bake", ...words], { workingDirectory: project });
const service = (text: string) => `services: {app: {build: {context: ., args: {K: "\${TOKEN}"}}${text}}}\n`;

/** What refuses to be read, and whether it is a link there. */
const rows: [name: string, prepare: () => void, shown: string][] = [
  [
    ".env as a link",
    () => {
      symlinkSync("../outside/credentials", join(project, ".env"));
      writeFiles(project, { "compose.yaml": service("") });
    },
    ".env leads out of this directory, by a link",
  ],
  [
    "compose.yaml as a link",
    () => symlinkSync("../outside/compose.yaml", join(project, "compose.yaml")),
    "compose.yaml leads out of this directory, by a link",
  ],
  [
    "docker-bake.json as a link",
    () => symlinkSync(join(outside, "docker-bake.json"), join(project, "docker-bake.json")),
    "docker-bake.json leads out of this directory, by a link",
  ],
  [
    "docker-bake.hcl in a directory that is a link",
    () => symlinkSync("../outside/docker-bake.hcl", join(project, "docker-bake.hcl")),
    "docker-bake.hcl leads out of this directory, by a link",
  ],
  [
    "include",
    () => writeFiles(project, { "compose.yaml": `include: [${outside}/key]\n` }),
    "include: OUTSIDE/key is outside of this directory",
  ],
  [
    "include by a link",
    () => {
      symlinkSync("../outside", join(project, "link"));
      writeFiles(project, { "compose.yaml": "include: [link/key]\n" });
    },
    "include: link/key leads out of this directory, by a link",
  ],
  [
    "env_file of an include",
    () =>
      writeFiles(project, {
        "compose.yaml": "include: [{path: part.yaml, env_file: ../outside/credentials}]\n",
        "part.yaml": service(""),
      }),
    "include: ../outside/credentials is outside of this directory",
  ],
  [
    "project_directory of an include",
    () =>
      writeFiles(project, {
        "compose.yaml": "include: [{path: part.yaml, project_directory: ../outside}]\n",
        "part.yaml": service(""),
      }),
    "include: ../outside/.env is outside of this directory",
  ],
  [
    "extends",
    () =>
      writeFiles(project, {
        "compose.yaml": service(", extends: {file: ../outside/compose.yaml, service: base}"),
      }),
    "services.app.extends: ../outside/compose.yaml is outside of this directory",
  ],
  [
    "env_file of a service",
    () =>
      writeFiles(project, {
        "compose.yaml":
          "services: {app: {env_file: ../outside/credentials, build: {context: ., args: [TOKEN]}}}\n",
      }),
    "services.app.env_file: ../outside/credentials is outside of this directory",
  ],
];

test.each(rows)("nothing outside is read without --allow: %s", async (_, prepare, shown) => {
  prepare();
  for (const words of [["--print"], ["--list", "targets"], []]) {
    // What isn't needed for a list is not read for it.
    const { exitCode, stdout, stderr } = await bake(...words);
    expect(stdout + stderr).not.toContain(canary);
    if (words[0] === "--list" && exitCode === 0) continue;
    expect({ exitCode, stderr: stderr.replaceAll(outside, "OUTSIDE") }).toEqual({
      exitCode: 2,
      stderr: expect.stringContaining(shown),
    });
    expect(stderr).toContain("If you trust the file, allow it: --allow fs.read=");
  }
});

test.each(rows)("with --allow it is read, and no error quotes it: %s", async (_, prepare) => {
  prepare();
  const { exitCode, stderr } = await bake("--print", "--allow", `fs.read=${outside}`);
  expect(stderr).not.toContain("is outside of this directory");
  if (exitCode !== 0) expect(stderr).not.toContain(canary);
});

test("a file that -f names, and what is beside it in this directory, needs no --allow", async () => {
  writeFiles(project, { "sub/compose.yaml": "include: [sub/part.yaml]\n", "sub/part.yaml": service("") });
  for (const file of ["../outside/compose.yaml", `${outside}/docker-bake.json`, "sub/compose.yaml"])
    expect(await bake("--print", "-f", file)).toMatchObject({ exitCode: 0 });
});

test.each([
  [".env as a link", ".env", () => service("")],
  ["include", undefined, () => `include: [${outside}/key]\n`],
  ["include by a link", "link.yaml", () => "include: [link.yaml]\n"],
])("nor for a file at an address, whose paths are those of this machine: %s", async (_, link, textOf) => {
  if (link !== undefined) symlinkSync("../outside/credentials", join(project, link));
  await using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(textOf()) });
  const { exitCode, stdout, stderr } = await bake(`http://127.0.0.1:${server.port}/compose.yaml`, "--print");
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining("--allow fs.read=") });
  expect(stdout + stderr).not.toContain(canary);
});

describe("what never ends, or never begins, is refused at once:", () => {
  const pipe = (name: string) => Bun.spawnSync(["mkfifo", join(project, name)]);
  const notAFile = "it is not a regular file";
  test.each<[name: string, prepare: () => void, words: string[], message: string]>([
    ["a pipe as compose.yaml", () => pipe("compose.yaml"), [], notAFile],
    [
      "a pipe as .env",
      () => [pipe(".env"), writeFiles(project, { "compose.yaml": service("") })],
      [],
      notAFile,
    ],
    [
      "a pipe that is included",
      () => [pipe("fifo"), writeFiles(project, { "compose.yaml": "include: [fifo]\n" })],
      [],
      notAFile,
    ],
    [
      "a pipe as env_file",
      () => [
        pipe("fifo"),
        writeFiles(project, {
          "compose.yaml": "services: {app: {env_file: fifo, build: {context: ., args: [T]}}}\n",
        }),
      ],
      [],
      notAFile,
    ],
    [
      "a device, even if it is allowed",
      () => writeFiles(project, { "compose.yaml": "include: [/dev/zero]\n" }),
      ["--allow", "fs=*"],
      notAFile,
    ],
    [
      "a file without end",
      () => {
        writeFiles(project, { "compose.yaml": "include: [large.yaml]\n" });
        Bun.spawnSync(["truncate", "--size=1T", join(project, "large.yaml")]);
      },
      [],
      "it is larger than 16777216 bytes",
    ],
    [
      "a pipe as a secret",
      () => [
        pipe("fifo"),
        writeFiles(project, { "docker-bake.json": '{"target": {"default": {"secret": ["id=t,src=fifo"]}}}' }),
      ],
      [],
      notAFile,
    ],
    [
      "a pipe as a Dockerfile",
      () => [
        pipe("fifo"),
        writeFiles(project, { "docker-bake.json": '{"target": {"default": {"dockerfile": "fifo"}}}' }),
      ],
      [],
      notAFile,
    ],
    [
      "files that include each other twice",
      () => {
        for (let at = 0; at < 40; at++)
          writeFiles(project, {
            [at === 0 ? "compose.yaml" : `${at}.yaml`]: `include: [${at + 1}.yaml, ${at + 1}.yaml]\n`,
          });
        writeFiles(project, { "40.yaml": "services: {}\n" });
      },
      [],
      "files are included more than 10000 times",
    ],
  ])("%s", async (_, prepare, words, message) => {
    prepare();
    const child = Bun.spawn([compileBough(), "--local", "bake", ...words], {
      cwd: project,
      env: { PATH: process.env.PATH, HOME: project },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const { exitCode, stderr } = await endOf(child);
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(message) });
  });

  test.each([
    [
      "services that extend one another",
      {
        "compose.yaml": `services:\n  s0: {build: .}\n${Array.from({ length: 3000 }, (_, at) => `  s${at + 1}: {extends: s${at}}\n`).join("")}`,
      },
      "more than 100 services extend one another",
    ],
    [
      "variables in variables",
      {
        "compose.yaml": `services: {app: {build: {context: ., args: {A: "${"${A:-".repeat(20_000)}${"}".repeat(20_000)}"}}}}\n`,
      },
      "variables are nested too deeply",
    ],
  ])("%s are refused", async (_, files, message) => {
    writeFiles(project, files);
    const { exitCode, stderr } = await bake("--print");
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(message) });
  });

  test("SIGTERM ends what computes for long", async () => {
    const nested = ["i", "j", "k", "l"].reduce(
      (body, name) => `[for ${name} in range(1000): ${body}]`,
      '"x"',
    );
    writeFiles(project, {
      "docker-bake.hcl": `target "default" {\n  args = { A = join("", flatten(${nested})) }\n}\n`,
    });
    const child = Bun.spawn([compileBough(), "bake", "--print"], {
      cwd: project,
      stdout: "ignore",
      stderr: "ignore",
    });
    // It computes for a second or more before it meets its limit, and starts in a tenth of one.
    while (processorTicks(child.pid) < 30) await Bun.sleep(5);
    child.kill();
    await child.exited;
    expect(child.signalCode).toBe("SIGTERM");
  });

  test("a pipe that --allow names is read, and the wait for it ends with SIGTERM", async () => {
    pipe("fifo");
    writeFiles(project, { "docker-bake.json": '{"target": {"default": {"secret": ["id=t,src=fifo"]}}}' });
    const child = Bun.spawn([compileBough(), "--local", "bake", "--allow", "fs.read=fifo"], {
      cwd: project,
      env: { PATH: process.env.PATH, HOME: project },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    // Opened as soon as it is read.
    const writer = await open(join(project, "fifo"), "w");
    child.kill();
    await writer.close();
    expect(await endOf(child)).toMatchObject({
      exitCode: 130,
      stderr: expect.stringContaining("interrupted"),
    });
  });
});

test("a Dockerfile that is a link out of its directory is not read, as in Docker, nor such an ignore file", async () => {
  writeFiles(project, { "dir/own": "FROM scratch\nCOPY Dockerfile /\n" });
  const build = (...words: string[]) =>
    runBough(["build", "--check", ...words], { workingDirectory: project });
  unlinkSync(join(project, "Dockerfile"));
  symlinkSync("../outside/key", join(project, "Dockerfile"));
  for (const words of [[], ["--docker"], ["--docker", "--dockerfile", "Dockerfile"]]) {
    const { exitCode, stdout, stderr } = await build(".", ...words);
    expect(stdout + stderr).not.toContain("PRIVATE");
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: expect.stringContaining(
        "Dockerfile: it is a link out of its directory, which Docker does not follow",
      ),
    });
  }
  unlinkSync(join(project, "Dockerfile"));
  symlinkSync("dir/own", join(project, "Dockerfile"));
  symlinkSync("../outside/key", join(project, ".dockerignore"));
  const { exitCode, stderr } = await build(".", "--docker");
  expect(stderr).toContain(".dockerignore is a link out of its directory: it is not applied, as in Docker");
  expect(exitCode).toBe(0);
});

/** Returns the processor time of a process, in hundredths of a second. */
function processorTicks(pid: number): number {
  const [user, system] = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /s, "")
    .split(" ")
    .slice(11, 13);
  return Number(user) + Number(system);
}
