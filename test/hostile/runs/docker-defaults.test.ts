/**
 * Compares runc's configuration for a RUN with the one that Docker gives it, line by line; each difference has its reason here.
 * Docker's lines come from github.com/moby/moby, daemon/pkg/oci/defaults.go, daemon/oci_linux.go and (mounts of a RUN's files)
 * BuildKit's executor/oci/spec_linux.go, at commit b985e2313a8676e18072b442911fc8f64f17d440 (23 August 2026). The system calls
 * of the seccomp filter are compared in test/engine/seccomp.test.ts.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { limitSettings } from "../../../src/engine/sandbox/limits/limits.ts";
import { findRunc } from "../../../src/engine/sandbox/runtime/runc.ts";
import { type SandboxConfigOptions, sandboxConfig } from "../../../src/engine/sandbox/sandbox-config.ts";
import { thermalThrottleDirectories } from "../../../src/engine/system/machine.ts";
import { temporaryDirectory } from "../../support/bough.ts";

const docker = `
apparmor docker-default
capability CAP_AUDIT_WRITE bounding effective permitted
capability CAP_CHOWN bounding effective permitted
capability CAP_DAC_OVERRIDE bounding effective permitted
capability CAP_FOWNER bounding effective permitted
capability CAP_FSETID bounding effective permitted
capability CAP_KILL bounding effective permitted
capability CAP_MKNOD bounding effective permitted
capability CAP_NET_BIND_SERVICE bounding effective permitted
capability CAP_NET_RAW bounding effective permitted
capability CAP_SETFCAP bounding effective permitted
capability CAP_SETGID bounding effective permitted
capability CAP_SETPCAP bounding effective permitted
capability CAP_SETUID bounding effective permitted
capability CAP_SYS_CHROOT bounding effective permitted
device allow c 1:3 rwm
device allow c 1:5 rwm
device allow c 1:8 rwm
device allow c 1:9 rwm
device allow c 5:0 rwm
device allow c 5:1 rwm
device deny c 10:229 rwm
device deny rwm
maskedPath /proc/acpi
maskedPath /proc/asound
maskedPath /proc/interrupts
maskedPath /proc/kcore
maskedPath /proc/keys
maskedPath /proc/latency_stats
maskedPath /proc/sched_debug
maskedPath /proc/scsi
maskedPath /proc/timer_list
maskedPath /proc/timer_stats
maskedPath /sys/devices/virtual/powercap
maskedPath /sys/firmware
mount /dev tmpfs tmpfs mode=755,nosuid,size=65536k,strictatime
mount /dev/mqueue mqueue mqueue nodev,noexec,nosuid
mount /dev/pts devpts devpts gid=5,mode=0620,newinstance,noexec,nosuid,ptmxmode=0666
mount /dev/shm tmpfs shm mode=1777,nodev,noexec,nosuid,size=65536k
mount /etc/hosts bind HOSTS nodev,noexec,nosuid,rbind,ro
mount /etc/resolv.conf bind RESOLV nodev,noexec,nosuid,rbind,ro
mount /proc proc proc nodev,noexec,nosuid
mount /sys sysfs sysfs nodev,noexec,nosuid,ro
mount /sys/fs/cgroup cgroup cgroup nodev,noexec,nosuid,ro
namespace cgroup
namespace ipc
namespace mount
namespace network
namespace pid
namespace time
namespace uts
noNewPrivileges false
readonly root false
readonlyPath /proc/bus
readonlyPath /proc/fs
readonlyPath /proc/irq
readonlyPath /proc/sys
readonlyPath /proc/sysrq-trigger
seccomp architecture SCMP_ARCH_X32
seccomp architecture SCMP_ARCH_X86
seccomp architecture SCMP_ARCH_X86_64
seccomp default SCMP_ACT_ERRNO 1
sysctl net.ipv4.ip_unprivileged_port_start=0
sysctl net.ipv4.ping_group_range=0 2147483647
terminal false
`
  .trim()
  .split("\n");

interface Difference {
  docker?: string[];
  bough?: string[];
  reason: string;
}

const always: Difference[] = [
  {
    docker: ["apparmor docker-default"],
    reason: "Docker's daemon loads this profile, on machines with AppArmor.",
  },
  {
    docker: ["device deny c 10:229 rwm"],
    reason: "/dev/fuse is denied with all others.",
  },
  {
    docker: ["namespace time"],
    reason:
      "runc before 1.2 does not know it, and it is not a security boundary: clocks cannot be set without CAP_SYS_TIME.",
  },
  {
    bough: ["readonlyPath /sys/fs/cgroup"],
    reason:
      "runc mounts control groups of version 1 read-only, but leaves the directory around them writable.",
  },
  {
    docker: ["seccomp architecture SCMP_ARCH_X32"],
    reason:
      "Few kernels have it, and compiling it makes each RUN 6 ms longer; without it such a call ends the program.",
  },
  {
    bough: ["oomScoreAdj 500"],
    reason: "When the machine runs out of memory, the kernel kills a RUN before bough and other programs.",
  },
];

const controlGroups: Difference[] = [
  {
    bough: [
      'resources cpu {"shares":512}',
      'resources memory {"limit":1000,"swap":1000}',
      'resources pids {"limit":64}',
      "rlimits []",
    ],
    reason: "Docker has no limits by default; a RUN of an unknown Dockerfile must not exhaust the machine.",
  },
];

/** An ordinary user can seldom make control groups. */
const noControlGroups: Difference[] = [
  {
    bough: ['rlimits [{"type":"RLIMIT_NPROC","hard":576,"soft":576}]'],
    reason: "Memory and processes are watched, which can be too slow for a fork bomb.",
  },
];

const limits = { memory: 1000, processes: 64, cpus: undefined, layerBytes: undefined };
const unbounded = { oomScore: 0, processes: Number.POSITIVE_INFINITY, fileSize: Number.POSITIVE_INFINITY };
const limited = limitSettings(
  { memory: { version: 1, countsSwap: true }, pids: { version: 1 }, cpu: { version: 1 } },
  limits,
  { inUserNamespace: false, own: unbounded },
);
const watched = limitSettings({}, limits, { inUserNamespace: true, own: unbounded });

const machinesNetwork: Difference[] = [
  {
    docker: ["namespace network"],
    reason: "The sandbox has no network of its own.",
  },
  {
    docker: ["capability CAP_NET_RAW bounding effective permitted"],
    reason: "On the machine's network it lets a RUN read others' packets and forge their sender.",
  },
  {
    docker: ["sysctl net.ipv4.ip_unprivileged_port_start=0", "sysctl net.ipv4.ping_group_range=0 2147483647"],
    reason: "They are settings of a network, and bough must not change those of the machine.",
  },
];

const userNamespace: Difference[] = [
  {
    docker: ["mount /sys/fs/cgroup cgroup cgroup nodev,noexec,nosuid,ro"],
    bough: ["mount /sys/fs/cgroup tmpfs tmpfs nodev,noexec,nosuid,ro"],
    reason: "The machine's /sys would show the machine's control groups; at best, a RUN has its own.",
  },
];

const settingsOfUserNamespace: Difference[] = [
  {
    docker: ["sysctl net.ipv4.ping_group_range=0 2147483647"],
    reason: "A user namespace has no such group ids; Docker omits it there, too.",
  },
];

const sysOfUserNamespace: Difference[] = [
  {
    docker: ["mount /sys sysfs sysfs nodev,noexec,nosuid,ro"],
    bough: ["mount /sys none /sys nodev,noexec,nosuid,rbind,ro,rro"],
    reason: "A user namespace cannot mount the sysfs of a network that it does not own.",
  },
];

const ownNetwork = { network: { kind: "private", resolvConf: "" } } as const;
const noNetwork = { network: { kind: "none", resolvConf: "" } } as const;
const machineNetwork = { network: { kind: "host", resolvConf: "" } } as const;
const ordinaryUser = { inUserNamespace: true, limits: watched };

describe.each([
  ["root", ownNetwork, [...always, ...controlGroups]],
  ["root with --network=none", noNetwork, [...always, ...controlGroups]],
  ["root with the machine's network", machineNetwork, [...always, ...controlGroups, ...machinesNetwork]],
  [
    "an ordinary user",
    { ...ordinaryUser, ...ownNetwork },
    [...always, ...noControlGroups, ...userNamespace, ...settingsOfUserNamespace],
  ],
  [
    "an ordinary user with --network=none",
    { ...ordinaryUser, ...noNetwork },
    [...always, ...noControlGroups, ...userNamespace, ...settingsOfUserNamespace],
  ],
  [
    "an ordinary user with the machine's network",
    { ...ordinaryUser, ...machineNetwork },
    [...always, ...noControlGroups, ...machinesNetwork, ...userNamespace, ...sysOfUserNamespace],
  ],
] as const)("a RUN of %s differs from Docker's only for a reason:", (_, options, differences) => {
  const lines = describeConfig(options);

  test.each(differences.flatMap(({ docker: theirs = [], reason }) => theirs.map((line) => [line, reason])))(
    "it lacks %s: %s",
    (line) => {
      expect(docker).toContain(line);
      expect(lines).not.toContain(line);
    },
  );

  test("it has no other difference", () => {
    const theirs = differences.flatMap((difference) => difference.docker ?? []);
    const ours = differences.flatMap((difference) => difference.bough ?? []);
    const expected = [...docker.filter((line) => !theirs.includes(line)), ...ours];
    expect(lines).toEqual(expected.sort());
  });
});

test("a user other than root has capabilities only in the bounding set", () => {
  expect(describeConfig({}, 1000)).toContain("capability CAP_CHOWN bounding");
});

test("the thermal counters of all processors are masked, too", () => {
  const sysfs = temporaryDirectory();
  for (const name of ["cpu0/thermal_throttle", "cpu1/thermal_throttle", "cpu2", "cpufreq"])
    mkdirSync(join(sysfs, name), { recursive: true });
  writeFileSync(join(sysfs, "online"), "0-2\n");
  expect(thermalThrottleDirectories(sysfs).sort()).toEqual([
    join(sysfs, "cpu0/thermal_throttle"),
    join(sysfs, "cpu1/thermal_throttle"),
  ]);
  expect(thermalThrottleDirectories(join(sysfs, "cpu2"))).toEqual([]);
});

const runc = findRunc({ PATH: process.env.PATH });

/** Returns runc's configuration as sorted lines to compare, without values that come from the request. */
function describeConfig(options: Partial<SandboxConfigOptions>, uid = 0): string[] {
  const config = sandboxConfig({
    root: "/root",
    process: { args: ["true"], env: {}, cwd: "/", uid, gid: 0, additionalGids: [0], home: "/" },
    hostname: "host",
    mounts: [],
    files: [
      { source: "RESOLV", destination: "/etc/resolv.conf" },
      { source: "HOSTS", destination: "/etc/hosts" },
    ],
    hasReadonlyFiles: true,
    inUserNamespace: false,
    views: { proc: true, sysfs: true },
    helper: 1,
    network: machineNetwork.network,
    architecture: "amd64",
    limits: limited,
    groups: {},
    runtime: runc,
    ...options,
  }) as RuncConfig;
  const { process, root, hostname, mounts, linux, ociVersion, ...unknown } = config;
  const { capabilities, terminal, noNewPrivileges, user, args, env, cwd, ...unknownOfProcess } = process;
  const { devices, ...otherResources } = linux.resources;
  const {
    namespaces,
    resources: _,
    maskedPaths,
    readonlyPaths,
    seccomp,
    sysctl = {},
    ...unknownOfLinux
  } = linux;
  // One line for each field that this function does not know.
  const others = Object.entries({ ...unknown, ...unknownOfProcess, ...unknownOfLinux }).map(
    ([name, value]) => `${name} ${JSON.stringify(value)}`,
  );
  const sets = Object.entries(capabilities);
  const names = [...new Set(sets.flatMap(([, members]) => members))];
  const ofThisMachine = thermalThrottleDirectories();
  return [
    ...others,
    ...names.map((name) => {
      const having = sets.filter(([, members]) => members.includes(name)).map(([set]) => set);
      return `capability ${name} ${having.sort().join(" ")}`;
    }),
    `terminal ${terminal}`,
    `noNewPrivileges ${noNewPrivileges}`,
    `readonly root ${root.readonly}`,
    ...mounts.map(
      (mount) =>
        `mount ${mount.destination} ${mount.type} ${mount.source} ${[...mount.options].sort().join(",")}`,
    ),
    ...namespaces.map(({ type }) => `namespace ${type}`),
    ...Object.entries(otherResources).map(([name, value]) => `resources ${name} ${JSON.stringify(value)}`),
    ...devices.map(({ allow, type, major, minor, access }) =>
      [
        "device",
        allow ? "allow" : "deny",
        ...(type === undefined ? [] : [type, `${major}:${minor}`]),
        access,
      ].join(" "),
    ),
    ...maskedPaths.filter((path) => !ofThisMachine.includes(path)).map((path) => `maskedPath ${path}`),
    ...readonlyPaths.map((path) => `readonlyPath ${path}`),
    ...seccomp.architectures.map((name) => `seccomp architecture ${name}`),
    ...Object.entries(sysctl).map(([name, value]) => `sysctl ${name}=${value}`),
    `seccomp default ${seccomp.defaultAction} ${seccomp.defaultErrnoRet}`,
  ].sort();
}

interface RuncConfig {
  ociVersion: string;
  hostname: string;
  process: {
    capabilities: Record<string, string[]>;
    terminal: boolean;
    noNewPrivileges: boolean;
    user: unknown;
    args: unknown;
    env: unknown;
    cwd: unknown;
  };
  root: { readonly: boolean };
  mounts: { destination: string; type: string; source: string; options: string[] }[];
  linux: {
    namespaces: { type: string }[];
    resources: {
      devices: { allow: boolean; type?: string; major?: number; minor?: number; access: string }[];
    };
    maskedPaths: string[];
    readonlyPaths: string[];
    sysctl?: Record<string, string>;
    seccomp: { architectures: string[]; defaultAction: string; defaultErrnoRet: number };
  };
}
