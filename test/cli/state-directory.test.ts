/** Damaged or unusable state directories: a clear error, or an empty cache in place of a damaged one. */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { boughOn } from "../fake-service/bough-on.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { openTargets } from "../support/descriptors.ts";
import { writeFiles } from "../support/files.ts";

let context: string;
let state: string;
let service: FakeService;
/** The command that fails, if any. */
let failing: string | undefined;
const mounts: string[] = [];
beforeEach(async () => {
  failing = undefined;
  context = temporaryDirectory();
  state = temporaryDirectory();
  service = await startFakeService({
    run: ({ command }) => ({ exitCode: command === failing ? 7 : 0 }),
  });
  service.state.addImage("base:1");
  writeFiles(context, { Dockerfile: "FROM base:1\nRUN first\nCOPY a.txt /\nRUN second\n", "a.txt": "a" });
});
afterEach(async () => {
  for (const mount of mounts.splice(0)) run("umount", "-l", mount);
  await service.close();
});

const build = (...options: string[]) => boughOn(service, ["build", ".", ...options], { context, state });

const runIn = (words: readonly string[]) =>
  runBough(["--url", service.url, ...words], {
    workingDirectory: context,
    environment: { BOUGH_HOME: state },
  });

const sessions = () => join(state, "sessions");
const stateFile = () => join(sessions(), readdirSync(sessions()).find((name) => name.endsWith(".db")) ?? "");

function run(...command: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(command);
  if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr}`);
}

describe("a damaged state file is set aside, and the build begins with an empty cache", () => {
  test.each<[string, (path: string) => void]>([
    ["garbage", (path) => writeFileSync(path, Buffer.alloc(50_000, "garbage "))],
    ["garbage after a good header", (path) => writeFileSync(path, overwritten(path, 100))],
    ["garbage in its second half", (path) => writeFileSync(path, overwritten(path, statSync(path).size / 2))],
    ["cut short within a page", (path) => truncateSync(path, 5000)],
    ["cut short at a page's end", (path) => truncateSync(path, 3 * 4096)],
    ["cut short within its header", (path) => truncateSync(path, 50)],
  ])("%s", async (_, damage) => {
    await build();
    damage(stateFile());
    const ended = await build();
    expect(ended.exitCode).toBe(0);
    expect(ended.runs).toEqual(["first", "second"]);
    expect(ended.stderr).toContain(
      `[WARN] the state file was damaged: it was renamed to ${stateFile()}.damaged,`,
    );
    expect(readdirSync(sessions()).filter((name) => name.includes(".damaged"))).toHaveLength(1);
    expect((await build()).runs).toEqual([]);
  });

  test("empty", async () => {
    await build();
    truncateSync(stateFile(), 0);
    const ended = await build();
    expect({ exitCode: ended.exitCode, runs: ended.runs }).toEqual({
      exitCode: 0,
      runs: ["first", "second"],
    });
  });

  test("with another name if there is one already", async () => {
    for (let round = 0; round < 2; round++) {
      await build();
      writeFileSync(stateFile(), "garbage ".repeat(1000));
    }
    await build();
    const names = readdirSync(sessions()).filter((name) => /\.damaged(-\d)?$/.test(name));
    expect(names.map((name) => name.replace(/^.*\.db/, "")).sort()).toEqual([".damaged", ".damaged-2"]);
  });

  test("but only by a build, not by a command that only reads it", async () => {
    await build();
    writeFileSync(stateFile(), "garbage ".repeat(1000));
    const ended = await runIn(["session", "list"]);
    expect(ended.exitCode).toBe(1);
    expect(ended.stderr).toContain(`[ERROR] cannot open the state file ${stateFile()}: `);
    expect(ended.stderr).toContain("The next `bough build` sets it aside");
  });
});

test("a state file of a newer bough is refused and not changed", async () => {
  await build();
  const database = new Database(stateFile());
  database.run("PRAGMA user_version = 1000");
  database.close();
  const before = readFileSync(stateFile());
  const ended = await build();
  expect(ended.exitCode).toBe(1);
  expect(ended.stderr).toContain("was written by a newer bough (version 1000 of its tables)");
  expect(readFileSync(stateFile())).toEqual(before);
  expect(ended.runs).toEqual([]);
});

test("a read-only file system is an error", async () => {
  await build();
  run("mount", "--bind", state, state);
  mounts.push(state);
  run("mount", "-o", "remount,bind,ro", state);
  const ended = await build();
  expect(ended.exitCode).toBe(1);
  expect(ended.stderr).toContain(`[ERROR] cannot open the state file ${stateFile()}: `);
  expect(ended.stderr).toContain("read-only");
  expect(ended.stderr).toContain("set BOUGH_HOME to another directory");
  expect(ended.runs).toEqual([]);
});

test.each([
  ["below a file", "a.txt/home", "a part of the path is not a directory"],
  ["with a name that is too long", "x".repeat(300), "the name is too long"],
])("a directory %s is an error", async (_, path, reason) => {
  state = join(context, path);
  for (const options of [[], ["images"]]) {
    const ended = options.length === 0 ? await build() : await runIn(options);
    expect(ended.stderr).toContain(`[ERROR] bough can't keep its state in ${state}: ${reason}`);
    expect(ended.stderr).toContain("Set BOUGH_HOME to another directory.");
    expect(ended.exitCode).toBe(1);
  }
  expect(service.requests).toEqual([]);
});

describe("a disk", () => {
  function mountSmall(size: string): void {
    state = join(temporaryDirectory(), "small");
    mkdirSync(state);
    run("mount", "-t", "tmpfs", "-o", `size=${size}`, "tmpfs", state);
    mounts.push(state);
  }

  /** Fills the disk at the first request that matches. */
  function fillAt(isMoment: (request: Request) => boolean): void {
    service.intercept = (request) => {
      if (!isMoment(request)) return undefined;
      try {
        writeFileSync(join(state, "ballast"), Buffer.alloc(1024 * 1024));
      } catch {
        // The disk is full now.
      }
      return undefined;
    };
  }

  test("that is full before the build is an error", async () => {
    mountSmall("64k");
    writeFileSync(join(state, "ballast"), Buffer.alloc(64 * 1024));
    const ended = await build();
    expect(ended.exitCode).toBe(1);
    expect(ended.stderr).toMatch(/\[ERROR\] cannot open the state file \S+: .*(full|no space)/i);
    expect(ended.runs).toEqual([]);
  });

  test("that becomes full during the build is an error, and the next build continues once there is space", async () => {
    mountSmall("1m");
    fillAt(
      ({ method, url }) =>
        method === "POST" && url.endsWith("/instances") && service.state.instances.length === 1,
    );
    const ended = await build();
    expect(ended.exitCode).toBe(1);
    expect(ended.stderr).toMatch(
      /\[ERROR\] \S*Dockerfile:[34]: no space left on the disk that holds bough's state\n/,
    );
    expect(ended.stderr).toContain(` are free on the disk of ${state}. The next build continues`);
    expect(ended.stderr).not.toContain("bough itself failed");
    run("rm", join(state, "ballast"));
    service.intercept = undefined;
    const again = await build();
    expect(again.exitCode).toBe(0);
    expect(ended.runs.concat(again.runs)).toEqual(["first", "second"]);
  });

  test("that becomes full after the last step only makes the next build slower", async () => {
    mountSmall("1m");
    failing = "second";
    await build();
    failing = undefined;
    fillAt(({ method }) => method === "PATCH");
    const ended = await build("--tag", "app:1");
    expect(ended.stderr).toContain("[WARN] there is no space left for bough's state: the next build hashes");
    expect(ended.stderr).not.toContain("[ERROR]");
    expect(ended.exitCode).toBe(0);
  });

  test("that becomes full during a failing step does not hide its error", async () => {
    mountSmall("1m");
    failing = "second";
    fillAt(
      ({ method, url }) =>
        method === "GET" && url.includes("/operations/") && service.state.instances.length === 2,
    );
    const ended = await build();
    expect(ended.stderr).toMatch(/\[ERROR\] \S*Dockerfile:4: the command failed with exit code 7/);
    expect(ended.exitCode).toBe(1);
  });
});

test("the state is closed after an error, since a call of bough mcp can fail often", async () => {
  const { stderr } = await runBough(["images", "--url", service.url, "--token", "two words"], {
    workingDirectory: context,
    environment: { BOUGH_HOME: state },
  });
  expect(stderr).toContain("invalid token");
  expect(openTargets().filter((path) => path.startsWith(state))).toEqual([]);
});

/** The same length, with other bytes from `start` on. */
function overwritten(path: string, start: number): Buffer {
  const bytes = readFileSync(path);
  return bytes.fill("garbage ", Math.floor(start));
}
