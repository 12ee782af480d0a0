/** `--memory`, `--cpus`, `--pids` and the like: the requests, and the messages if a command hits a limit. */
import { describe, expect, onTestFinished, test } from "bun:test";
import type { InstanceBody } from "../../src/service/wire/instance.ts";
import type { LimitHit } from "../../src/service/wire/operation.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import type { FakeServiceOptions } from "../fake-service/options.ts";
import type { RunOutcome } from "../fake-service/state.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

const image = "11111111-1111-4111-8111-111111111111";
const dockerfile = "FROM base:1\nCOPY directory/ /directory/\nRUN make\n";

async function start(options: FakeServiceOptions = {}) {
  const fake = await startFakeService({ extensions: ["resource-limits", "shm-size", "ulimits"], ...options });
  onTestFinished(() => fake.close());
  fake.state.addImage("base:1");
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: dockerfile, "directory/empty": "directory/" });
  const environment = { BOUGH_HOME: temporaryDirectory(), CONTREE_URL: fake.url, CONTREE_TOKEN: "token" };
  return {
    fake,
    bough: (...words: string[]) => runBough(words, { workingDirectory: context, environment }),
    sent: () =>
      fake.requestsTo("POST /v1/instances").map(({ json }) => (json as InstanceBody).resources_limits),
  };
}

describe("values", () => {
  test.each([
    ["--memory 6m", { max_memory_bytes: 6 * 1024 ** 2 }],
    ["--memory 512M", { max_memory_bytes: 512 * 1024 ** 2 }],
    ["--memory 1.5g", { max_memory_bytes: 1.5 * 1024 ** 3 }],
    ["--memory 2GiB", { max_memory_bytes: 2 * 1024 ** 3 }],
    ["--memory 8000000", { max_memory_bytes: 8_000_000 }],
    ["--memory 8000000b", { max_memory_bytes: 8_000_000 }],
    ["--memory 9000k", { max_memory_bytes: 9000 * 1024 }],
    ["--cpus .5", { cpus: 0.5 }],
    ["--cpus 2", { cpus: 2 }],
    ["--pids 64", { max_processes: 64 }],
    ["--shm-size 1g", { shm_bytes: 1024 ** 3 }],
    ["--shm-size 1 --pids 64", { max_processes: 64, shm_bytes: 1 }],
    ["--ulimit nofile=1024", { ulimits: { nofile: { soft: 1024, hard: 1024 } } }],
    [
      "--ulimit nofile=5 --ulimit core=-1 --ulimit nofile=0:-1 --ulimit nice=1:2",
      {
        ulimits: { nofile: { soft: 0, hard: -1 }, core: { soft: -1, hard: -1 }, nice: { soft: 1, hard: 2 } },
      },
    ],
    ["--pids 100 --cpus 1.5 --memory 1g", { max_processes: 100, cpus: 1.5, max_memory_bytes: 1024 ** 3 }],
  ])("%s reaches every operation of a build, and a run", async (options, expected) => {
    const { bough, sent } = await start();
    expect(await bough("build", ".", ...options.split(" "))).toMatchObject({ exitCode: 0 });
    // The empty directory needs a separate operation.
    expect(sent()).toEqual([expected, expected]);
    await bough("run", "-D", "--use", "base:1", "-F", "directory:/d", ...options.split(" "), "--", "true");
    expect(sent().slice(2)).toEqual([expected, expected]);
  });

  test.each([
    [
      "--memory",
      ["", "0", "5m", "much", "1x", "-1g", "1,5g", "1e9", "99999999999999g"],
      "a size of at least 6m",
    ],
    ["--shm-size", ["", "0", "-1", "many", "1x", "0.5"], "a size of at least 1 byte"],
    [
      "--ulimit",
      ["", "nofile", "nofile=", "=1", "nofile=a", "nofile=1:", "nofile=1:2:3", "nofile=-2", "nofile=1.5"],
      "NAME=SOFT[:HARD]",
    ],
    ["--ulimit", ["nofile=99999999999999999999", "nofile = 1", "nofile:1"], "NAME=SOFT[:HARD]"],
    ["--cpus", ["", "0", "0.001", "all", "-1", "1/2", "."], "a number of at least 0.01"],
    ["--pids", ["", "0", "7", "-1", "1.5", "many", "1k"], "a whole number of at least 8"],
  ])("%s refuses other values before any request", async (option, values, expected) => {
    const { bough, fake } = await start();
    for (const value of values) {
      for (const words of [
        ["build", "."],
        ["run", "-D", "--use", "base:1"],
      ]) {
        const end = words[0] === "run" ? ["--", "true"] : [];
        const { exitCode, stderr } = await bough(...words, `${option}=${value}`, ...end);
        expect(stderr).toContain(`[ERROR] ${option} takes ${expected}, not ${JSON.stringify(value)}\n`);
        expect(exitCode).toBe(2);
      }
    }
    expect(fake.requests).toEqual([]);
  });

  test.each([
    ["as=1", "unknown limit as"],
    ["NOFILE=1", "unknown limit NOFILE"],
    ["nofile=2:1", "the soft limit is above the hard limit"],
    ["nofile=-1:1", "the soft limit is above the hard limit"],
  ])("--ulimit %s is refused", async (value, problem) => {
    const { bough, fake } = await start();
    const { exitCode, stderr } = await bough("build", ".", "--ulimit", value);
    expect(stderr).toContain(`[ERROR] --ulimit ${value}: ${problem}\n`);
    expect(exitCode).toBe(2);
    expect(fake.requests).toEqual([]);
  });

  test("are not part of a layer's hash: with other limits everything is cached", async () => {
    const { bough, fake, sent } = await start();
    await bough("build", ".");
    expect(sent()).toEqual([undefined, undefined]);
    fake.clearRequests();
    const { stderr } = await bough("build", ".", "--shm-size", "1g", "--ulimit", "core=0");
    expect(stderr).toContain("1 of 1 layer cached");
    expect(sent()).toEqual([]);
  });
});

describe("limits are refused for a service that does not support them:", () => {
  test.each<[string, FakeServiceOptions]>([
    ["names other extensions", { extensions: ["image-list"] }],
    ["has no whoami", { sixCallsOnly: true }],
  ])("one that %s", async (_, options) => {
    const { bough, fake } = await start(options);
    for (const words of [
      ["build", ".", "--pids", "64"],
      ["run", "-D", "--use", image, "--pids", "64", "--", "true"],
      ["run", "-d", "--use", image, "--pids", "64", "--", "true"],
    ]) {
      const { exitCode, stderr } = await bough(...words);
      expect(stderr).toContain(
        `[ERROR] ${fake.url} does not support --memory, --cpus and --pids: it sets the limits itself\n`,
      );
      expect(exitCode).toBe(2);
    }
    expect(fake.requests.filter(({ method }) => method !== "GET")).toEqual([]);
  });

  test.each([
    ["--shm-size", "1g"],
    ["--ulimit", "core=0"],
  ])("one that supports the others, but not %s", async (option, value) => {
    const { bough, fake } = await start({ extensions: ["resource-limits"] });
    for (const words of [
      ["build", ".", "--pids", "64", option, value],
      ["run", "-D", "--use", image, option, value, "--", "true"],
    ]) {
      const { exitCode, stderr } = await bough(...words);
      expect(stderr).toContain(`[ERROR] ${fake.url} does not support ${option}\nLeave it out, or use`);
      expect(exitCode).toBe(2);
    }
    expect(fake.requests.filter(({ method }) => method !== "GET")).toEqual([]);
    expect(await bough("build", ".", "--pids", "64")).toMatchObject({ exitCode: 0 });
  });
});

describe("a command that hits a limit", () => {
  const hit = (limit: LimitHit["limit"], value: number, killed: boolean): RunOutcome => ({
    exitCode: 137,
    limitsHit: [{ limit, value, killed }],
  });
  const table: [RunOutcome, string][] = [
    [
      hit("max_memory_bytes", 12 * 1024 ** 3, false),
      "Killed: out of memory (limit 12 GiB); raise it with --memory.",
    ],
    [
      hit("max_memory_bytes", 1.5 * 1024 ** 2, true),
      "Killed: out of memory (limit 1.5 MiB); raise it with --memory.",
    ],
    [hit("max_processes", 64, true), "Killed: too many processes (limit 64); raise it with --pids."],
    [hit("max_processes", 64, false), "Out of processes (limit 64); raise it with --pids."],
  ];

  test.each(table)("%j is in the failed step's hint", async (outcome, hint) => {
    const { bough } = await start({ run: ({ command }) => (command === "make" ? outcome : undefined) });
    const { exitCode, stderr } = await bough("build", ".");
    expect(stderr).toMatch(/the command failed with exit code 137 \(operation \S+\)\n/);
    expect(stderr).toContain(`\n${hint}\n`);
    expect(exitCode).toBe(1);
  });

  test.each(table)("%j causes a warning of run, which has the command's exit code", async (outcome, hint) => {
    const { bough } = await start({ run: () => outcome });
    const { exitCode, stderr } = await bough("run", "-D", "--use", "base:1", "--", "make");
    expect(stderr).toContain(`[WARN] ${hint}\n`);
    expect(exitCode).toBe(137);
  });

  test("and succeeds causes a warning", async () => {
    const outcome = { ...hit("max_memory_bytes", 1024 ** 3, false), exitCode: 0 };
    const { bough } = await start({ run: ({ command }) => (command === "make" ? outcome : undefined) });
    const { exitCode, stderr } = await bough("build", ".");
    expect(stderr).toMatch(
      /\[WARN\] the command succeeded, but ran into a limit \(operation \S+\)\. Killed: out of memory \(limit 1 GiB\)/,
    );
    expect(exitCode).toBe(0);
  });

  test.each([[null], ["much"], [{}], [[1, null, { limit: "other", value: 1 }, { limit: "max_processes" }]]])(
    "that is unknown (%j) is reported like any other failure",
    async (limitsHit) => {
      const outcome = { exitCode: 137, limitsHit } as unknown as RunOutcome;
      const { bough } = await start({ run: ({ command }) => (command === "make" ? outcome : undefined) });
      expect((await bough("build", ".")).stderr).toContain("often because memory ran out");
    },
  );
});
