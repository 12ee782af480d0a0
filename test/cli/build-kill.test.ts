/**
 * SIGKILL of builds on a service that keeps running: at any moment, no command is run again if its outcome can be known,
 * and the next build continues from there.
 */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import type { RunOutcome } from "../fake-service/state.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { writeFiles } from "../support/files.ts";
import { runs, spreadRandom } from "../support/random.ts";

let context: string;
let state: string;
let service: FakeService;
/** The outcome of the next RUN. */
let outcome: RunOutcome | undefined;
beforeEach(async () => {
  context = temporaryDirectory();
  state = temporaryDirectory();
  outcome = undefined;
  service = await startFakeService({ clock: systemClock, run: () => outcome });
  service.state.addImage("base:1");
});
afterEach(async () => {
  await service.close();
});

const wordsFor = (url: string, options: readonly string[]) => [
  "--url",
  url,
  "--token",
  "t0ken-t0ken",
  "build",
  ".",
  ...options,
];

async function build(...options: string[]) {
  const ended = await runBough(wordsFor(service.url, options), {
    workingDirectory: context,
    environment: { BOUGH_HOME: state },
  });
  return { ...ended, runs: service.state.instances.map(({ command }) => command) };
}

function startChild(world: Pick<World, "context" | "state" | "service">, ...options: string[]) {
  return Bun.spawn([compileBough(), ...wordsFor(world.service.url, options)], {
    cwd: world.context,
    env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", BOUGH_HOME: world.state },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
}

/** Builds in a process that is killed as soon as `isTime` returns true. */
async function buildAndKill(isTime: () => boolean, ...options: string[]): Promise<void> {
  const child = startChild({ context, state, service }, ...options);
  while (!isTime()) await Bun.sleep(1);
  child.kill("SIGKILL");
  await child.exited;
}

/** A command that runs until `release` is called. */
function held(): { outcome: RunOutcome; release: () => void } {
  let release = () => {};
  const until = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { outcome: { until, stdout: "done\n" }, release: () => release() };
}

const isRunning = () => service.state.instances.length > 0;
const operations = () => [...service.state.operations.values()].map(({ record }) => record);

describe("a build that is killed while a command runs", () => {
  test("the next build waits for the command's end", async () => {
    writeFiles(context, { Dockerfile: "FROM base:1\nRUN slow\nRUN next\n" });
    const command = held();
    outcome = command.outcome;
    await buildAndKill(() => isRunning() && answered("POST /v1/instances"));
    outcome = undefined;
    service.clearRequests();
    const again = build();
    await Promise.race([again, untilRequested(`GET /v1/operations/${operations()[0]?.uuid}/events`)]);
    command.release();
    const { exitCode, stderr, runs } = await again;
    expect(stderr).toContain(`[INFO] RUN resumed op=${operations()[0]?.uuid} RUN slow\n`);
    expect(stderr).toContain("[INFO] stdout:\ndone\n");
    expect({ exitCode, runs }).toEqual({ exitCode: 0, runs: ["slow", "next"] });
    expect((await build()).stderr.match(/cached layer/g)).toHaveLength(2);
  });

  test("the next build takes the image of a command that has succeeded", async () => {
    writeFiles(context, { Dockerfile: "FROM base:1\nRUN slow\n" });
    const command = held();
    outcome = command.outcome;
    await buildAndKill(() => isRunning() && answered("POST /v1/instances"));
    command.release();
    const { exitCode, stdout, runs } = await build("-q");
    expect({ exitCode, runs }).toEqual({ exitCode: 0, runs: ["slow"] });
    expect(stdout.trim()).toBe(operations()[0]?.result?.image ?? "");
  });

  test.each<[string, RunOutcome]>([
    ["fails", { exitCode: 1 }],
    ["is stopped by its timeout", { exitCode: 137, timedOut: true }],
    ["cannot be run", { error: "no capacity" }],
  ])("the next build runs a command again that %s", async (_, end) => {
    writeFiles(context, { Dockerfile: "FROM base:1\nRUN slow\n" });
    const command = held();
    outcome = { ...command.outcome, ...end };
    await buildAndKill(() => isRunning() && answered("POST /v1/instances"));
    outcome = undefined;
    command.release();
    const { exitCode, runs } = await build();
    expect({ exitCode, runs }).toEqual({ exitCode: 0, runs: ["slow", "slow"] });
  });

  test("the next build runs a command again if the service has removed its image", async () => {
    writeFiles(context, { Dockerfile: "FROM base:1\nRUN slow\n" });
    const command = held();
    outcome = command.outcome;
    await buildAndKill(() => isRunning() && answered("POST /v1/instances"));
    command.release();
    while (operations()[0]?.result?.image == null) await Bun.sleep(1);
    service.state.forgetImage(operations()[0]?.result?.image ?? "");
    // An image without a tag, which proves that the service lists such images: one that it does not list is gone.
    service.state.addImage();
    const { exitCode, runs } = await build();
    expect({ exitCode, runs }).toEqual({ exitCode: 0, runs: ["slow", "slow"] });
  });

  test("the next build runs everything again with --no-cache", async () => {
    writeFiles(context, { Dockerfile: "FROM base:1\nRUN slow\n" });
    outcome = held().outcome;
    await buildAndKill(() => isRunning() && answered("POST /v1/instances"));
    outcome = undefined;
    const { exitCode, runs } = await build("--no-cache");
    expect({ exitCode, runs }).toEqual({ exitCode: 0, runs: ["slow", "slow"] });
  });

  test("the next build also finds the command that makes directories and links before a RUN", async () => {
    writeFiles(context, {
      Dockerfile: "FROM base:1\nCOPY . /app\nRUN make\n",
      "a/empty/": "directory/",
      ".dockerignore": "Dockerfile",
    });
    const command = held();
    outcome = command.outcome;
    await buildAndKill(() => isRunning() && answered("POST /v1/instances"));
    outcome = undefined;
    command.release();
    const { exitCode, runs } = await build();
    expect({ exitCode, runs }).toEqual({ exitCode: 0, runs: ["sh", "make"] });
  });
});

describe("a build that is killed before it gets the response to a started operation", () => {
  test("the next build finds the operation by its request id", async () => {
    writeFiles(context, { Dockerfile: "FROM base:1\nRUN slow\n" });
    holdResponses();
    await buildAndKill(isRunning);
    service.intercept = undefined;
    const { exitCode, stderr, runs } = await build();
    expect(stderr).toContain("RUN resumed op=");
    expect({ exitCode, runs }).toEqual({ exitCode: 0, runs: ["slow"] });
  });

  test("the next build finds it, also if the build before was killed while it waited for it", async () => {
    writeFiles(context, { Dockerfile: "FROM base:1\nRUN slow\n" });
    const command = held();
    outcome = command.outcome;
    holdResponses();
    await buildAndKill(isRunning);
    service.intercept = undefined;
    const follows = () => service.requestsTo(`GET /v1/operations/${operations()[0]?.uuid}/events`).length > 0;
    await buildAndKill(follows);
    const again = build();
    command.release();
    const { exitCode, runs } = await again;
    expect({ exitCode, runs }).toEqual({ exitCode: 0, runs: ["slow"] });
  });

  test("the next build warns and runs the command again on a service without a list of operations", async () => {
    await service.close();
    service = await startFakeService({ clock: systemClock, sixCallsOnly: true, importAnswers: "image" });
    writeFiles(context, { Dockerfile: "FROM base:1\nRUN slow\n" });
    holdResponses();
    await buildAndKill(isRunning);
    service.intercept = undefined;
    const { exitCode, stderr, runs } = await build();
    expect(stderr).toContain("[WARN] an earlier build ended while starting RUN slow");
    expect({ exitCode, runs }).toEqual({ exitCode: 0, runs: ["slow", "slow"] });
  });

  test("the next build runs the command once it is certain that the request never arrived", async () => {
    writeFiles(context, { Dockerfile: "FROM base:1\nRUN slow\n" });
    service.intercept = ({ method, url }) =>
      method === "POST" && url.endsWith("/instances") ? new Promise<never>(() => {}) : undefined;
    await buildAndKill(() => service.requestsTo("POST /v1/instances").length > 0);
    service.intercept = undefined;
    const { exitCode, runs } = await build();
    expect({ exitCode, runs }).toEqual({ exitCode: 0, runs: ["slow"] });
  }, 180_000);
});

test("concurrent builds do not wait for each other's operations", async () => {
  writeFiles(context, { Dockerfile: "FROM base:1\nRUN slow\n" });
  outcome = { delayMs: 300 };
  const child = startChild({ context, state, service });
  while (!isRunning()) await Bun.sleep(1);
  const { exitCode, runs } = await build();
  expect({ exitCode, runs }).toEqual({ exitCode: 0, runs: ["slow", "slow"] });
  expect(await child.exited).toBe(0);
});

/** A build that is killed repeatedly. */
interface Victim {
  options: string[];
  extensions?: string[];
  lines: string[];
}

const rounds = (...words: string[]) => words.map((word) => `RUN ${word} $ROUND`);
const oneStage: Victim = {
  options: [],
  lines: ["FROM base:1", "ARG ROUND", "RUN one $ROUND", "COPY data /data", ...rounds("two", "three", "four")],
};
/** Two stages have the same first command, which is run once for both. */
const severalStages: Victim = {
  options: ["--docker", "--jobs", "3"],
  lines: [
    ...["FROM base:1 AS one", "ARG ROUND", "RUN one $ROUND", "COPY data /data", ...rounds("two")],
    ...["FROM base:1 AS other", "ARG ROUND", ...rounds("other")],
    ...["FROM base:1 AS same", "ARG ROUND", ...rounds("other", "more")],
    ...["FROM one", "COPY --from=other /etc/hosts /a", ...rounds("three")],
    ...["COPY --from=same /etc/hosts /b", ...rounds("four")],
  ],
};

/**
 * `KILLS` sets the number of kills, `KILL_SEED` their moments; `FAST_CHECK_TIMES` multiplies the default number. Two
 * builds run concurrently, because most of a build's time is its start.
 */
test.each<[string, number, Victim]>([
  ["a build", runs(30), oneStage],
  ["a build of several stages", runs(12), severalStages],
  [
    "a build of several stages on a service that copies",
    runs(12),
    { ...severalStages, extensions: ["copies"] },
  ],
])(
  "random kills of %s",
  async (_, defaultKills, victim) => {
    const kills = Number(process.env.KILLS ?? defaultKills);
    const seed = Number(process.env.KILL_SEED ?? 1);
    const worlds = [makeWorld(victim), makeWorld(victim)];
    const loops = worlds.map(async (world, index) =>
      killOften(await world, spreadRandom(seed + index), kills / 2),
    );
    for (const { builds, world } of await Promise.all(loops)) {
      const runs = world.service.state.instances.map(
        ({ image, command, env, copies }) =>
          `${command} ${env?.ROUND} ${JSON.stringify(copies ?? [])} on ${image}`,
      );
      process.stderr.write(
        `seed ${seed}: ${kills / 2} kills in ${builds} builds, ${runs.length} instances\n`,
      );
      expect({ seed, twice: runs.filter((run, index) => runs.indexOf(run) !== index) }).toEqual({
        seed,
        twice: [],
      });
      for (const name of readdirSync(join(world.state, "sessions")).filter((name) => name.endsWith(".db"))) {
        const database = new Database(join(world.state, "sessions", name));
        expect(database.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
        expect(database.query("PRAGMA foreign_key_check").all()).toEqual([]);
        expect(database.query("SELECT step FROM unfinished").all()).toEqual([]);
        database.close();
      }
      await world.service.close();
    }
  },
  60_000 + Number(process.env.KILLS ?? runs(30)) * 1000,
);

interface World {
  context: string;
  state: string;
  service: FakeService;
  options: string[];
}

async function makeWorld({ options, extensions, lines }: Victim): Promise<World> {
  const world = {
    context: temporaryDirectory(),
    state: temporaryDirectory(),
    service: await startFakeService({
      clock: systemClock,
      run: () => ({ delayMs: 15, stdout: "working\n" }),
      ...(extensions === undefined ? {} : { extensions }),
    }),
    options,
  };
  world.service.state.addImage("base:1");
  world.service.state.tree.set("/etc", { type: "directory" });
  world.service.state.tree.set("/etc/hosts", { type: "file", content: "127.0.0.1 localhost" });
  writeFiles(world.context, {
    Dockerfile: lines.join("\n"),
    "data/file": "x".repeat(100_000),
    "data/empty": "directory/",
  });
  return world;
}

/** Builds until there were enough kills. A build that completes is followed by one with another ROUND, so nothing is cached. */
async function killOften(world: World, random: () => number, kills: number) {
  let round = 0;
  let killed = 0;
  let builds = 0;
  /** Milliseconds of the first build, which is not killed and has nothing cached. */
  let fullMilliseconds = 0;
  for (; ; builds++) {
    const child = startChild(
      world,
      ...world.options,
      ...["--build-arg", `ROUND=${round}`, "--tag", `app:${round}`],
    );
    const output = new Response(child.stderr).text();
    const killAfter = random() * 1.2 * fullMilliseconds;
    // Some time after the first request, because before it there is nothing to lose; at most a little after the end.
    const before = world.service.requests.length;
    while (world.service.requests.length === before && child.exitCode === null) await Bun.sleep(1);
    const started = performance.now();
    const isSpared = builds === 0 || killed === kills;
    const timer = setTimeout(() => isSpared || child.kill("SIGKILL"), killAfter);
    await child.exited;
    clearTimeout(timer);
    if (child.signalCode === "SIGKILL") {
      killed++;
      continue;
    }
    expect({ exitCode: child.exitCode, output: await output }).toMatchObject({ exitCode: 0 });
    if (isSpared && builds > 0) return { builds, world };
    fullMilliseconds ||= performance.now() - started;
    round++;
  }
}

/** Resolves once there is a request of this kind. */
async function untilRequested(call: string): Promise<void> {
  while (service.requestsTo(call).length === 0) await Bun.sleep(1);
}

/** True if all calls of this kind have got their responses. */
function answered(call: string): boolean {
  return service.requestsTo(call).every((request) => request.answered);
}

/** Makes the service start commands without responding. */
function holdResponses(): void {
  const intercept: FakeService["intercept"] = async (request) => {
    if (request.method !== "POST" || !request.url.endsWith("/instances")) return undefined;
    service.intercept = undefined;
    await service.handle(request);
    service.intercept = intercept;
    return await new Promise<never>(() => {});
  };
  service.intercept = intercept;
}
