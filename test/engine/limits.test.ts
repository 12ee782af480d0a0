import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, lstatSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  containerParent,
  findHierarchies,
  readLimitEvents,
  usableControllers,
} from "../../src/engine/sandbox/limits/controllers.ts";
import {
  limitSettings,
  limitsFor,
  maxUlimits,
  requireUlimits,
} from "../../src/engine/sandbox/limits/limits.ts";
import { countedSize, watchEvents } from "../../src/engine/sandbox/limits/watchers.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { decode, TestEngine } from "../support/engine.ts";
import { runUntilExpired } from "../support/expired-command.ts";
import { writeFiles } from "../support/files.ts";

const gibibyte = 1024 ** 3;

describe("the default limits", () => {
  test.each([
    ["a small machine", { memory: 2 * gibibyte, processors: 2, maxProcesses: 32_768 }, 1.5, 4096],
    ["a usual machine", { memory: 16 * gibibyte, processors: 8, maxProcesses: 32_768 }, 12.8, 4096],
    ["a large machine", { memory: 64 * gibibyte, processors: 32, maxProcesses: 4_194_304 }, 60, 4096],
    [
      "a very large machine",
      { memory: 512 * gibibyte, processors: 256, maxProcesses: 4_194_304 },
      508,
      16_384,
    ],
    ["a container of 512 MiB", { memory: gibibyte / 2, processors: 1, maxProcesses: 4096 }, 0.25, 1024],
  ])("on %s", (_, machine, memoryGibibytes, processes) => {
    expect(limitsFor({}, machine)).toEqual({
      memory: Math.floor(memoryGibibytes * gibibyte),
      processes,
      cpus: undefined,
      layerBytes: undefined,
    });
  });
});

test("max_processes is at most what Linux supports", () => {
  const machine = { memory: gibibyte, processors: 2, maxProcesses: 4_194_304 };
  expect(limitsFor({ max_processes: 99_999_999 }, machine).processes).toBe(4_193_280);
});

test("/dev/shm is at most as large as the memory", () => {
  const machine = { memory: gibibyte, processors: 2, maxProcesses: 4096 };
  expect(limitsFor({ shm_bytes: 1 }, machine).shmBytes).toBe(1);
  expect(limitsFor({ shm_bytes: gibibyte, max_memory_bytes: 1000 }, machine).shmBytes).toBe(1000);
});

describe("runc's settings for limits", () => {
  const unbounded = { oomScore: 0, processes: Number.POSITIVE_INFINITY, fileSize: Number.POSITIVE_INFINITY };
  const limits = { memory: 1000, processes: 64, cpus: undefined, layerBytes: 2000 };
  const both = (type: string, value: number) => ({ type, hard: value, soft: value });

  test.each([
    ["in a user namespace", true, unbounded, [both("RLIMIT_FSIZE", 2000), both("RLIMIT_NPROC", 576)]],
    ["as root", false, unbounded, [both("RLIMIT_FSIZE", 2000)]],
    [
      "with lower limits of bough itself",
      true,
      { oomScore: 0, processes: 100, fileSize: 500 },
      [both("RLIMIT_FSIZE", 500), both("RLIMIT_NPROC", 100)],
    ],
  ])("without control groups, %s", (_, inUserNamespace, own, rlimits) => {
    expect(limitSettings({}, limits, { inUserNamespace, own })).toEqual({
      resources: {},
      rlimits,
      oomScoreAdj: 500,
    });
  });

  test("a request's limits are kept, unless bough's own are lower", () => {
    const ulimits = {
      fsize: { soft: 1000, hard: -1 },
      nofile: { soft: 5, hard: -1 },
      nproc: { soft: -1, hard: -1 },
    };
    const settings = limitSettings({}, { ...limits, ulimits }, { inUserNamespace: true, own: unbounded });
    expect(settings.rlimits).toEqual([
      { type: "RLIMIT_FSIZE", soft: 1000, hard: 2000 },
      { type: "RLIMIT_NOFILE", soft: 5, hard: Number.POSITIVE_INFINITY },
      both("RLIMIT_NPROC", 576),
    ]);
  });

  test.each([
    ["in a user namespace", true],
    ["as root of the machine, who may be without the capability", false],
  ])("the highest limits that the engine may set, %s", (_, inUserNamespace) => {
    const maxOf = maxUlimits({ inUserNamespace });
    expect(maxOf("nofile")).toBeGreaterThan(100);
    expect(maxOf("nofile")).toBeLessThanOrEqual(Number(readFileSync("/proc/sys/fs/nr_open", "utf8")));
    expect(() => requireUlimits({ nofile: { soft: 1, hard: maxOf("nofile") } }, maxOf)).not.toThrow();
    expect(() => requireUlimits({ nofile: { soft: 1, hard: maxOf("nofile") + 1 } }, maxOf)).toThrow(
      /^ulimits.nofile.hard must be at most \d+ \(the engine may set no more\), not \d+$/,
    );
    expect(() => requireUlimits({ nofile: { soft: -1, hard: -1 } }, maxOf)).toThrow("not unlimited");
  });

  test("with control groups of version 2, cpus, and a high OOM score of bough itself", () => {
    const two = { version: 2 } as const;
    const controllers = { memory: { ...two, countsSwap: false }, pids: two, cpu: two };
    const own = { ...unbounded, oomScore: 900 };
    const asked = { ...limits, cpus: 1.5, layerBytes: undefined };
    expect(limitSettings(controllers, asked, { inUserNamespace: true, own })).toEqual({
      resources: {
        memory: { limit: 1000 },
        pids: { limit: 64 },
        cpu: { period: 100_000, quota: 150_000 },
        unified: { "cpu.weight": "50" },
      },
      rlimits: [],
      oomScoreAdj: 900,
    });
  });
});

describe("the engine's API", () => {
  let engine: TestEngine;
  let base: string;
  beforeAll(async () => {
    engine = await TestEngine.open();
    base = await engine.importBase();
  });
  afterAll(() => engine.close());

  test.each([
    [{ max_memory_bytes: 1024 }, "max_memory_bytes must be a whole number of at least 6291456"],
    [{ max_processes: 7 }, "max_processes must be a whole number of at least 8"],
    [{ max_processes: 64.5 }, "max_processes must be a whole number of at least 8"],
    [{ max_layer_bytes: 0 }, "max_layer_bytes must be a whole number of at least 1"],
    [{ cpus: 0 }, "cpus must be at least 0.01"],
    [{ ulimits: [] }, "ulimits must be an object"],
    [{ ulimits: { as: {} } }, "ulimits.as is not a known field"],
    [{ ulimits: { core: 1 } }, "ulimits.core must be an object"],
    [{ ulimits: { core: { soft: 1 } } }, "ulimits.core must have soft and hard"],
    [{ ulimits: { core: { soft: 1, hard: -2 } } }, "hard must be a whole number of at least -1"],
    [{ ulimits: { core: { soft: 2, hard: 1 } } }, "ulimits.core.soft must not be above hard"],
    [{ ulimits: { core: { soft: -1, hard: 1 } } }, "ulimits.core.soft must not be above hard"],
    [{ ulimits: { core: { soft: 1, hard: 1, x: 1 } } }, "ulimits.core.x is not a known field"],
    [{ shm_bytes: 0 }, "shm_bytes must be a whole number of at least 1"],
    [{ shm_bytes: "1g" }, "shm_bytes must be a whole number of at least 1"],
    [{ cpus: "2" }, "cpus must be at least 0.01"],
    ["much", "resources_limits must be an object"],
  ])("refuses %j", async (limits, error) => {
    const body = { image: base, command: "true", shell: true, resources_limits: limits };
    const response = await engine.fetch("POST", "/v1/instances", body);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error, status: 400 });
  });

  test("a killed command's output has only its own text", async () => {
    const { metadata } = await runUntilExpired(engine, base, "echo mine >&2; exec sleep 60");
    const { state, stderr } = metadata?.result ?? {};
    expect([decode(stderr), state?.exit_code]).toEqual(["mine\n", 137]);
  });

  test("the record has the requested limits, and the limit that the command hit", async () => {
    const limits = {
      max_memory_bytes: 64 * 1024 ** 2,
      max_processes: 64,
      cpus: 0.5,
      max_layer_bytes: 2 ** 30,
    };
    const { operation, exitCode } = await engine.run(base, "exec tail /dev/zero", {
      resources_limits: limits,
    });
    expect(operation.metadata?.resources_limits).toEqual(limits);
    expect(exitCode).toBe(137);
    const hits = [{ limit: "max_memory_bytes", value: 64 * 1024 ** 2, killed: false }];
    expect(operation.metadata?.result?.limits_hit).toEqual(hits as never);
    const exit = (await engine.events(operation.uuid)).find(({ type }) => type === "exit");
    expect(exit?.data.limits_hit).toEqual(hits);
  });
});

describe("control groups", () => {
  const mounts = (root: string, lines: string) => lines.trim().replaceAll("ROOT", root);
  const one = `
31 23 0:28 / ROOT rw - tmpfs tmpfs rw
32 31 0:29 / ROOT/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 31 0:30 / ROOT/memory rw - cgroup cgroup rw,memory
34 31 0:31 / ROOT/pids rw - cgroup cgroup rw,pids
35 31 0:32 / ROOT/systemd rw - cgroup cgroup rw,name=systemd
36 31 0:33 / ROOT/unified rw - cgroup2 cgroup2 rw`;
  const two = "30 23 0:26 / ROOT rw - cgroup2 cgroup2 rw,nsdelegate";

  test("of version 1 are found next to an empty version 2", () => {
    const root = temporaryDirectory();
    const groups = "4:memory:/a\n3:cpu,cpuacct:/a\n2:pids:/\n1:name=systemd:/\n0::/\n";
    writeFiles(root, {
      "memory/a/memory.memsw.limit_in_bytes": "1",
      "cpu,cpuacct/a": "directory/",
      "pids/pids.max": "",
      "unified/cgroup.procs": "",
      "unified/cgroup.controllers": "hugetlb",
    });
    const hierarchies = findHierarchies(groups, mounts(root, one));
    expect(hierarchies.map(containerParent)).toEqual(
      ["cpu,cpuacct/a", "memory/a", "pids", "systemd", "unified"].map((name) => join(root, name)),
    );
    expect(usableControllers(hierarchies)).toEqual({
      cpu: { version: 1 },
      memory: { version: 1, countsSwap: true },
      pids: { version: 1 },
    });
  });

  test("of version 1 that are not writable are not used", () => {
    const hierarchies = findHierarchies("4:memory:/a\n2:pids:/\n0::/\n", mounts("/proc/none", one));
    expect(usableControllers(hierarchies)).toEqual({});
  });

  test("of version 2 are made next to this process's group, with the controllers of the parent group", () => {
    const root = temporaryDirectory();
    writeFiles(root, {
      "user/cgroup.procs": "",
      "user/cgroup.controllers": "cpu memory pids",
      "user/cgroup.subtree_control": "memory pids",
      "user/own/memory.max": "max",
      "user/own/memory.swap.max": "max",
    });
    const hierarchies = findHierarchies("0::/user/own\n", mounts(root, two));
    expect(hierarchies.map(containerParent)).toEqual([join(root, "user")]);
    expect(usableControllers(hierarchies)).toEqual({
      memory: { version: 2, countsSwap: true },
      pids: { version: 2 },
      // bough has enabled this controller in the parent group.
      cpu: { version: 2 },
    });
    expect(readFileSync(join(root, "user/cgroup.subtree_control"), "utf8")).toBe("+cpu");
  });

  test("of version 2 get a controller that only a group further up has", () => {
    const root = temporaryDirectory();
    writeFiles(root, {
      "cgroup.controllers": "cpu memory pids",
      "cgroup.subtree_control": "memory pids",
      "system/cgroup.controllers": "memory pids",
      "system/cgroup.subtree_control": "memory pids",
      "system/cgroup.procs": "",
      "system/own/memory.max": "max",
    });
    expect(usableControllers(findHierarchies("0::/system/own\n", mounts(root, two)))).toMatchObject({
      memory: { version: 2 },
      pids: { version: 2 },
      cpu: { version: 2 },
    });
    const enabled = ["", "system"].map((group) =>
      readFileSync(join(root, group, "cgroup.subtree_control"), "utf8"),
    );
    expect(enabled).toEqual(["+cpu", "+cpu"]);
  });

  test("of version 2 have no controller that the machine lacks", () => {
    const root = temporaryDirectory();
    writeFiles(root, {
      "cgroup.controllers": "memory",
      "system/cgroup.controllers": "memory",
      "system/cgroup.subtree_control": "memory",
      "system/cgroup.procs": "",
      "system/own/memory.max": "max",
    });
    const hierarchies = findHierarchies("0::/system/own\n", mounts(root, two));
    expect(Object.keys(usableControllers(hierarchies))).toEqual(["memory"]);
  });

  test("of version 2 are not limited below a container's top group, whose processes could then start nothing", () => {
    const root = temporaryDirectory();
    const files = {
      "cgroup.type": "domain",
      "cgroup.procs": "1",
      "cgroup.controllers": "cpu memory pids",
      "cgroup.subtree_control": "",
    };
    writeFiles(root, files);
    expect(usableControllers(findHierarchies("0::/\n", mounts(root, two)))).toEqual({});
    expect(readFileSync(join(root, "cgroup.subtree_control"), "utf8")).toBe("");
    // Its processes have been moved to a group below.
    writeFiles(root, { "cgroup.procs": "", "init/memory.max": "max" });
    const usable = usableControllers(findHierarchies("0::/init\n", mounts(root, two)));
    expect(Object.keys(usable).toSorted()).toEqual(["cpu", "memory", "pids"]);
  });

  test("of version 2 that belong to others are not used", () => {
    const root = temporaryDirectory();
    writeFiles(root, { "session/own/cgroup.procs": "", "session/cgroup.controllers": "cpu memory pids" });
    expect(usableControllers(findHierarchies("0::/session/own\n", mounts(root, two)))).toEqual({});
    expect(existsSync(join(root, "session/cgroup.subtree_control"))).toBe(false);
  });

  test("that are mounted twice count once", () => {
    const bound = `${one}\n40 23 0:31 / /mnt rw - cgroup cgroup rw,pids\n41 23 0:33 / /two rw - cgroup2 cgroup2 rw`;
    const groups = "4:memory:/a\n3:cpu,cpuacct:/a\n2:pids:/\n1:name=systemd:/\n0::/\n";
    const once = findHierarchies(groups, mounts("/x", one));
    expect(once).toHaveLength(5);
    expect(findHierarchies(groups, mounts("/x", bound))).toEqual(once);
  });

  test("above the mount point are not reachable", () => {
    expect(findHierarchies("0::/../other\n", mounts("/x", two))).toEqual([]);
  });

  test.each([
    [
      "version 1",
      { memory: "memory", pids: "pids" },
      {
        "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
        "pids/pids.events": "max 7\n",
      },
    ],
    [
      "version 2",
      { "": "both" },
      { "both/memory.events": "low 0\noom 4\noom_kill 3\n", "both/pids.events": "max 7\n" },
    ],
    [
      "both",
      { "": "unified", memory: "memory", pids: "pids" },
      {
        "memory/memory.oom_control": "oom_kill 3\n",
        "pids/pids.events": "max 7\n",
        "unified/cgroup.procs": "",
      },
    ],
  ] as const)("events of %s are counted", (_, groups, files) => {
    const root = temporaryDirectory();
    writeFiles(root, files);
    const paths = Object.fromEntries(Object.entries(groups).map(([name, path]) => [name, join(root, path)]));
    expect(readLimitEvents(paths)).toEqual({ outOfMemory: 3, outOfProcesses: 7 });
  });

  test("that were removed have no events", () => {
    expect(readLimitEvents({ memory: "/proc/none", pids: "/proc/none" })).toEqual({
      outOfMemory: 0,
      outOfProcesses: 0,
    });
    expect(readLimitEvents({})).toEqual({ outOfMemory: 0, outOfProcesses: 0 });
  });
});

describe("a command that keeps hitting its limits is killed:", () => {
  const followed = (counts: readonly [memory: number, processes: number][]) => {
    let at = 0;
    const watcher = watchEvents(() => {
      const [outOfMemory, outOfProcesses] = counts[Math.min(at, counts.length - 1)] ?? [0, 0];
      return { outOfMemory, outOfProcesses };
    });
    for (let now = watcher.firstMilliseconds; at < 100; at++) {
      const seen = watcher.check(now);
      if (typeof seen === "string") return `${seen} after ${now} ms`;
      now += seen as number;
    }
    return "never";
  };
  const growing = (from: number, count: number) =>
    Array.from({ length: count }, (_, index): [number, number] => [0, from + index]);

  test.each<[string, [number, number][], string]>([
    ["that hits no limit", [[0, 0]], "never"],
    ["that was refused a process once", [[0, 1]], "never"],
    ["that is refused processes for four seconds", growing(1, 8), "never"],
    ["that is refused processes forever", growing(1, 100), "max_processes after 5500 ms"],
    ["that is refused processes twice with a pause", [...growing(1, 8), [0, 8], ...growing(9, 8)], "never"],
    ["some of whose processes were killed", [[9, 0]], "never"],
    [
      "of which process after process runs out of memory",
      Array.from({ length: 20 }, (_, index): [number, number] => [index, 0]),
      "max_memory_bytes after 5500 ms",
    ],
  ])("a command %s", (_, counts, expected) => expect(followed(counts)).toBe(expected));
});

describe("a layer's size", () => {
  test("is the disk usage of its files plus 512 bytes an entry", async () => {
    const upper = temporaryDirectory();
    expect(await countedSize(upper, 1e9)).toBe(0);
    writeFiles(upper, { "d/e": "directory/", link: { link: "x" } });
    // On btrfs, a link takes a block.
    const ofLink = lstatSync(join(upper, "link")).blocks * 512;
    expect(await countedSize(upper, 1e9)).toBe(3 * 512 + ofLink);
    Bun.spawnSync(["truncate", "-s", "1G", join(upper, "sparse")]);
    expect(await countedSize(upper, 1e9)).toBe(4 * 512 + ofLink);
    writeFiles(upper, { "d/content": "x".repeat(1_000_000) });
    Bun.spawnSync(["ln", join(upper, "d/content"), join(upper, "d/again")]);
    const size = await countedSize(upper, 1e9);
    expect(size).toBeGreaterThan(1_000_000);
    expect(size).toBeLessThan(1_100_000);
  });

  test("is counted only up to the limit", async () => {
    const upper = temporaryDirectory();
    for (let index = 0; index < 100; index++) mkdirSync(join(upper, `${index}`));
    expect(await countedSize(upper, 10 * 512)).toBe(11 * 512);
  });

  test("is no longer counted when the signal is aborted", async () => {
    await expect(countedSize(temporaryDirectory(), 1e9, AbortSignal.abort("enough"))).rejects.toBe("enough");
  });
});
