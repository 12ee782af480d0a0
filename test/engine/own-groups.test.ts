/** Control groups that bough makes itself. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { closeSync, mkdirSync, readFileSync, rmdirSync } from "node:fs";
import { basename, join } from "node:path";
import type { SandboxNetwork } from "../../src/engine/network/networks.ts";
import {
  deviceProgram,
  loadProgram,
  restrictDevices,
} from "../../src/engine/sandbox/limits/device-program.ts";
import { limitSettings } from "../../src/engine/sandbox/limits/limits.ts";
import { makeGroups } from "../../src/engine/sandbox/limits/own-groups.ts";
import { Crun } from "../../src/engine/sandbox/runtime/crun.ts";
import { openDevices, sandboxConfig } from "../../src/engine/sandbox/sandbox-config.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { openTargets } from "../support/descriptors.ts";
import { writeFiles } from "../support/files.ts";

describe("a control group of version 2", () => {
  const controllers = {
    memory: { version: 2, countsSwap: true },
    pids: { version: 2 },
    cpu: { version: 2 },
  } as const;
  const own = { oomScore: 0, processes: 1000, fileSize: 1e12 };
  const limits = { memory: 64 * 1024 ** 2, processes: 24, cpus: 1.5, layerBytes: undefined };
  const settings = limitSettings(controllers, limits, { inUserNamespace: true, own });

  function makeTwo(files: Record<string, string> = { "cgroup.procs": "" }) {
    const root = temporaryDirectory();
    writeFiles(root, Object.fromEntries(Object.entries(files).map(([name, text]) => [`user/${name}`, text])));
    mkdirSync(join(root, "user/session"), { recursive: true });
    const noted: object[] = [];
    const two = {
      version: 2,
      controllers: [],
      directory: join(root, "user/session"),
      mountPoint: root,
    } as const;
    const groups = makeGroups("container", [two], undefined, (directories) => void noted.push(directories));
    return { directory: join(root, "user/container"), groups, noted };
  }

  test("is made next to this process's group, and noted", () => {
    const { directory, groups, noted } = makeTwo();
    expect(groups).toMatchObject({ directories: { "": directory }, views: { "": directory } });
    expect(groups.entries).toEqual([join(directory, "cgroup.procs")]);
    expect(noted).toEqual([{ "": directory }]);
  });

  test("has runc's limits, with one more process", () => {
    const { directory, groups } = makeTwo();
    groups.limit(settings);
    const files = ["memory.max", "memory.swap.max", "pids.max", "cpu.max", "cpu.weight"];
    const read = () => files.map((file) => readFileSync(join(directory, file), "utf8"));
    expect(read()).toEqual([String(limits.memory), "0", "25", "150000 100000", "50"]);
    groups.allowProcesses(limits.processes, 3);
    expect(read()[2]).toBe("27");
  });

  test("is not made if the groups belong to others", () => {
    const { groups, noted } = makeTwo({});
    expect(groups).toMatchObject({ directories: {}, views: {}, entries: [] });
    expect(noted).toEqual([{}]);
  });

  test("is not made if there are groups of version 1", () => {
    const root = temporaryDirectory();
    for (const name of ["pids", "unified"]) mkdirSync(join(root, name));
    writeFiles(root, { "unified/cgroup.procs": "" });
    const at = (name: string) => ({ directory: join(root, name), mountPoint: join(root, name) });
    const one = { version: 1, controllers: ["pids"], ...at("pids") } as const;
    const two = { version: 2, controllers: [], ...at("unified") } as const;
    const groups = makeGroups("container", [two, one], undefined, () => {});
    expect(groups.directories).toEqual({ pids: join(root, "pids/container") });
  });
});

describe("the devices of a control group of version 2", () => {
  const hierarchy = temporaryDirectory();
  const group = join(hierarchy, basename(hierarchy));
  const nodes = temporaryDirectory();
  beforeAll(() => {
    Bun.spawnSync(["mount", "-t", "cgroup2", "cgroup2", hierarchy]);
    mkdirSync(group);
    restrictDevices(group, openDevices);
  });
  afterAll(() => {
    rmdirSync(group);
    Bun.spawnSync(["umount", hierarchy]);
  });

  test.each([
    ["null", "c 1 3", "opened"],
    ["full, which Docker's list lacks and runc adds", "c 1 7", "opened"],
    ["the machine's memory", "c 1 1", "made"],
    ["a terminal of the machine", "c 4 1", "made"],
    ["a block device with the numbers of null", "b 1 3", "made"],
    ["a disk", "b 7 0", "made"],
  ])("%s", (name, device, outcome) => {
    const node = join(nodes, basename(name));
    const script = 'echo 0 > "$1" && mknod "$2" $3 && echo made && exec < "$2" && echo opened';
    const words = ["sh", "-c", script, "sh", join(group, "cgroup.procs"), node, device];
    const { stdout, stderr } = Bun.spawnSync(words, { env: { PATH: process.env.PATH, LC_ALL: "C" } });
    expect(stdout.toString().trim().split("\n").at(-1)).toBe(outcome);
    if (outcome === "made") expect(stderr.toString()).toContain("Operation not permitted");
  });

  test("an invalid rule is an error", () => {
    expect(() => deviceProgram(["b 1:3"])).toThrow("invalid device rule");
  });

  test("one program is loaded for all groups, also if signals arrive", async () => {
    const other = join(hierarchy, `${basename(hierarchy)}-other`);
    const programs = () => openTargets().filter((target) => target === "anon_inode:bpf-prog").length;
    const before = programs();
    mkdirSync(other);
    restrictDevices(other, openDevices);
    rmdirSync(other);
    expect(programs()).toBe(before);
    const ignore = () => {};
    process.on("SIGWINCH", ignore);
    const sender = Bun.spawn(["sh", "-c", "while kill -WINCH $0; do sleep 0.001; done", String(process.pid)]);
    for (let time = 0; time < 300; time++) {
      const program = loadProgram(deviceProgram(openDevices));
      expect(program).toBeDefined();
      closeSync(program ?? -1);
    }
    sender.kill();
    await sender.exited;
    process.off("SIGWINCH", ignore);
  });

  test("a directory that is not a control group is refused", () => {
    expect(() => restrictDevices(nodes, openDevices)).toThrow("cannot restrict the devices");
  });
});

describe("a command that crun starts sees", () => {
  const flags = ["nosuid", "noexec", "nodev", "ro"];
  const tmpfs = { type: "tmpfs", source: "tmpfs", options: [...flags, "mode=755"] };
  const place = "/sys/fs/cgroup";
  test.each([
    [
      "its control groups of version 1, each in its place",
      { pids: "/groups/pids" },
      false,
      [
        { destination: place, ...tmpfs },
        { destination: `${place}/pids`, type: "bind", source: "/groups/pids", options: ["bind", ...flags] },
      ],
    ],
    [
      "its control group of version 2",
      { "": "/groups" },
      false,
      [{ destination: place, type: "cgroup", source: "cgroup", options: flags }],
    ],
    [
      "its control group of version 2 in a user namespace, too",
      { "": "/groups" },
      true,
      [{ destination: place, type: "cgroup", source: "cgroup", options: flags }],
    ],
    [
      "no control groups of version 1 in a user namespace",
      { pids: "/groups/pids" },
      true,
      [{ destination: place, ...tmpfs }],
    ],
  ])("%s", (_, groups, inUserNamespace, expected) => {
    const { mounts } = sandboxConfig({
      root: "/root",
      process: { args: ["true"], env: {}, cwd: "/", uid: 0, gid: 0, additionalGids: [], home: "/" },
      hostname: "host",
      mounts: [],
      files: [],
      hasReadonlyFiles: false,
      network: { kind: "none" } as SandboxNetwork,
      architecture: "amd64",
      limits: { resources: {}, rlimits: [], oomScoreAdj: 500 },
      runtime: new Crun({ program: "crun", copy: undefined, state: "/state", filter: undefined }),
      groups: groups as Record<string, string>,
      inUserNamespace,
      views: { proc: true, sysfs: true },
      helper: 1,
    });
    const seen = mounts as { destination: string }[];
    expect(seen.filter(({ destination }) => destination.startsWith(place))).toEqual(expected);
  });
});
