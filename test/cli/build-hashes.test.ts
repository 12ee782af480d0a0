/** Files whose state has not changed are not read again; every change of a file is noticed. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { lstatSync, readdirSync, renameSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/clock.ts";
import { openStore } from "../../src/store/store.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

/** A minute ahead, because hashes of files that were just written are not remembered. */
const later: Clock = { ...systemClock, now: () => Date.now() + 60_000 };

let service: FakeService;
let context: string;
let home: string;
beforeEach(async () => {
  service = await startFakeService();
  service.state.addImage("base:1");
  context = temporaryDirectory();
  home = temporaryDirectory();
  writeFiles(context, { Dockerfile: "FROM base:1\nCOPY a b /app/\nRUN make\n", a: "one", b: "two" });
});
afterEach(() => service.close());

async function build(clock: Clock = later) {
  service.clearRequests();
  const environment = { CONTREE_URL: service.url, CONTREE_TOKEN: "t0ken-t0ken", BOUGH_HOME: home };
  const ended = await runBough(["build"], { workingDirectory: context, environment, clock });
  return { ...ended, runs: service.requestsTo("POST /v1/instances").length };
}

function openHashes() {
  const directory = join(home, "sessions");
  const name = readdirSync(directory).find((each) => each.endsWith(".db")) ?? "";
  const store = openStore(join(directory, name), systemClock);
  const { dev, ino, size, mtimeMs, ctimeMs } = lstatSync(join(context, "a"));
  const state = { device: dev, inode: ino, size, mtimeMs, ctimeMs };
  return { store, hashes: store.hashes.open(context), state, path: join(context, "a") };
}

test("a second build reads no file, but verifies a file that it sends", async () => {
  expect((await build()).runs).toBe(1);
  expect((await build()).runs).toBe(0);
  // A wrong hash, which is found out only by reading the file.
  const { store, hashes, state, path } = openHashes();
  hashes.set(path, state, "f".repeat(64));
  hashes.save();
  store.close();
  // Another step, because the result of the first one is known without the files.
  writeFiles(context, { Dockerfile: "FROM base:1\nCOPY a b /app/\nRUN make again\n" });
  const { exitCode, stderr } = await build();
  expect(stderr).toContain(`${context}/a changed while it was being read`);
  expect(exitCode).toBe(1);
});

test.each([
  ["whose layer the service has lost", () => service.state.forgetImage(latestImage()), "make"],
  ["with another command", () => writeDockerfile("RUN make again"), "make again"],
  ["with another environment", () => writeDockerfile("ENV A=1\nRUN make"), "make"],
  ["that follows another COPY", () => writeDockerfile("COPY c /app/c\nRUN make"), "make"],
  ["that follows a WORKDIR", () => writeDockerfile("WORKDIR /w\nRUN make"), "make"],
])("unchanged files that were not read are sent for a step %s", async (_, change, commandOf) => {
  writeFiles(context, { c: "three" });
  await build();
  expect((await build()).runs).toBe(0);
  change();
  expect((await build()).exitCode).toBe(0);
  const { command, files = {} } = service.state.instances.at(-1) ?? {};
  expect(command).toContain(commandOf);
  expect(Object.keys(files).filter((path) => path !== "/app/c")).toEqual(["/app/a", "/app/b"]);
});

function latestImage(): string {
  return [...service.state.images.keys()].at(-1) ?? "";
}

function writeDockerfile(lines: string): void {
  writeFiles(context, { Dockerfile: `FROM base:1\nCOPY a b /app/\n${lines}\n` });
}

test.each<[string, () => void]>([
  ["written in place, with the same size and time", () => writeFileSync(join(context, "a"), "eno")],
  [
    "replaced, with the same size and time",
    () => {
      writeFileSync(join(context, "new"), "eno");
      renameSync(join(context, "new"), join(context, "a"));
    },
  ],
])("a file that is %s is noticed", async (_, change) => {
  await build();
  const before = statSync(join(context, "a"));
  change();
  utimesSync(join(context, "a"), before.atime, before.mtime);
  // A Date holds whole milliseconds.
  expect(Math.trunc(statSync(join(context, "a")).mtimeMs)).toBe(Math.trunc(before.mtimeMs));
  expect((await build()).runs).toBe(1);
});

test.each([
  ["just before it was read is not remembered: it may change again with the same state", 0, false],
  ["a minute before it was read is remembered", 60_000, true],
])("a file that was written %s", async (_, milliseconds, isRemembered) => {
  const now = Math.trunc(statSync(join(context, "a")).ctimeMs) + milliseconds;
  await build({ ...systemClock, now: () => now });
  const { store, hashes, state, path } = openHashes();
  expect(hashes.get(path, state) !== undefined).toBe(isRemembered);
  store.close();
});
