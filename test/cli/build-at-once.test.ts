/** Concurrent builds with one state directory, each in its own process. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { openStore } from "../../src/store/store.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { type Ended, runBough, temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";

async function build(url: string, context: string, state: string, ...options: string[]): Promise<Ended> {
  const words = ["--url", url, "--token", "t0ken-t0ken", "build", "-q", context, ...options];
  const child = Bun.spawn([compileBough(), ...words], {
    cwd: context,
    env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", BOUGH_HOME: state },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  return endOf(child);
}

function requireSound(state: string): void {
  for (const name of readdirSync(join(state, "sessions")).filter((file) => file.endsWith(".db"))) {
    const database = new Database(join(state, "sessions", name));
    expect(database.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    expect(database.query("PRAGMA foreign_key_check").all()).toEqual([]);
    database.close();
  }
}

const dockerfile = (number: number | string) =>
  `FROM base:1\nRUN first ${number}\nCOPY a.txt /\nRUN second ${number}\nRUN third ${number}\n`;

test("twenty builds of twenty contexts all succeed, and no layer is lost", async () => {
  const service = await startFakeService({ run: () => ({ delayMs: 5 }) });
  service.state.addImage("base:1");
  const state = temporaryDirectory();
  const contexts = Array.from({ length: 20 }, (_, number) => {
    const context = temporaryDirectory();
    writeFiles(context, { Dockerfile: dockerfile(number), "a.txt": `a${number % 7}` });
    return context;
  });
  const first = await Promise.all(contexts.map((context) => build(service.url, context, state)));
  expect(first.filter(({ exitCode, stderr }) => exitCode !== 0 || stderr !== "")).toEqual([]);
  expect(service.state.instances).toHaveLength(60);
  requireSound(state);

  const [name = ""] = readdirSync(join(state, "sessions")).filter((file) => file.endsWith(".db"));
  const store = openStore(join(state, "sessions", name), systemClock);
  const sessions = store.sessions.list("build:");
  store.close();
  expect(sessions.map(({ branches, entries }) => ({ branches, entries }))).toEqual(
    contexts.map(() => ({ branches: 4, entries: 4 })),
  );
  for (const [number, context] of contexts.entries()) {
    const words = ["--url", service.url, "build", "-q", context];
    const environment = { BOUGH_HOME: state };
    expect(await runBough(words, { workingDirectory: context, environment })).toEqual(first[number] as Ended);
  }
  await service.close();
  expect(service.state.instances).toHaveLength(60);
}, 180_000);

test("eight builds of one context all succeed, and afterwards everything is cached", async () => {
  const service = await startFakeService({ run: () => ({ delayMs: 20 }) });
  service.state.addImage("base:1");
  const state = temporaryDirectory();
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: dockerfile("x"), "a.txt": "a" });
  const options = Array.from({ length: 8 }, (_, number) => ["--tag", `app:${number}`]);
  const ended = await Promise.all(options.map((tag) => build(service.url, context, state, ...tag)));
  expect(ended.filter(({ exitCode, stderr }) => exitCode !== 0 || stderr !== "")).toEqual([]);
  requireSound(state);
  const images = new Set(service.state.images.keys());
  expect(ended.filter(({ stdout }) => !images.has(stdout.trim()))).toEqual([]);
  expect(service.requestsTo(/tag$/).map(({ status }) => status)).toEqual(Array(8).fill(200));
  const before = service.state.instances.length;
  expect((await build(service.url, context, state)).exitCode).toBe(0);
  expect(service.state.instances).toHaveLength(before);
  await service.close();
}, 180_000);
