/**
 * A command has and sees the same with runc and crun: its process, descriptors, mounts, devices and control groups. Each
 * difference has its reason here.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { usableRuntimes } from "../../support/runtimes.ts";
import { type Attacker, makeAttacker, users } from "../attacker.ts";

const ownFields = "Vm[A-Za-z]+|Rss[A-Z][a-z]+|Name|State|Tgid|Ngid|Pid|PPid|NS[a-z]+|FDSize|SigQ|Threads";
const countedFields =
  "voluntary_ctxt_switches|nonvoluntary_ctxt_switches|HugetlbPages|x86_.*|untag_mask|Cpus.*|Mems.*";

/** Shell commands by name. Each line of their output gets the name as its first word. */
const queries: Record<string, string> = {
  status: `grep -vE '^(${ownFields}|${countedFields}):' /proc/self/status`,
  limit: "cat /proc/self/limits",
  score: "cat /proc/self/oom_score_adj",
  umask: "umask",
  cwd: "pwd",
  nice: "cut -d' ' -f18,19 /proc/self/stat",
  session: "cut -d' ' -f4-9 /proc/1/stat",
  label: "cat /proc/self/attr/current 2>/dev/null",
  persona: "cat /proc/self/personality /proc/self/coredump_filter /proc/self/setgroups",
  environment: "env | sort",
  descriptor:
    "for p in self 1; do for f in /proc/$p/fd/*; do echo $p ${f##*/} $(readlink $f | sed 's/[0-9]+/N/g' -E) $(stat -L -c '%F %a %u' $f); done; done",
  namespace: "for n in /proc/self/ns/*; do echo ${n##*/}; done",
  mount:
    "sed -E 's/^([0-9]+ ){2}[0-9]+:[0-9]+ //; s/[0-9a-f-]{36}/ID/; s/lowerdir=.*//' /proc/self/mountinfo | sort",
  group: "cat /proc/self/cgroup; find /sys/fs/cgroup | sort",
  setting:
    "for f in memory/memory.limit_in_bytes memory/memory.memsw.limit_in_bytes memory/memory.swappiness pids/pids.max cpu/cpu.shares cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us cpuset/cpuset.cpus cpuset/cpuset.mems freezer/freezer.state memory.max memory.high memory.swap.max memory.oom.group pids.max cpu.max cpu.weight cgroup.type cgroup.subtree_control cgroup.freeze; do echo $f $(cat /sys/fs/cgroup/$f 2>/dev/null); done",
  allowed: "sort /sys/fs/cgroup/devices/devices.list 2>/dev/null",
  device:
    "find /dev /proc/acpi /proc/scsi /sys/firmware | sort | while read -r f; do stat -c '%n %N %F %a %u %g %t:%T' $f; done",
  sysctl:
    "for s in net/ipv4/ip_unprivileged_port_start net/ipv4/ping_group_range kernel/hostname kernel/domainname kernel/shmmax kernel/msgmax fs/mqueue/msg_max; do echo $s $(cat /proc/sys/$s); done",
  masked:
    "for p in acpi asound interrupts kcore keys latency_stats sched_debug scsi timer_list timer_stats bus fs irq sys sysrq-trigger; do echo $p $(stat -c '%F %a %t:%T' /proc/$p 2>&1) $(wc -c < /proc/$p 2>/dev/null); done",
  written:
    "for f in /proc/sys/kernel/domainname /proc/sysrq-trigger /proc/irq/x /proc/keys /sys/x /sys/fs/cgroup/x /sys/fs/cgroup/*/x /sys/fs/cgroup/*/* /dev/x /proc/self/oom_score_adj; do (: > $f) 2>/dev/null && echo $f; done",
};

interface Difference {
  runc?: RegExp;
  crun?: RegExp;
  reason: string;
}

const differences: Difference[] = [
  {
    crun: /^device \/dev\/core '\/dev\/core' -> '\/proc\/kcore' /,
    reason: "Docker has it as well; /proc/kcore is masked.",
  },
  {
    runc: /^allowed c 10:200 rwm$/,
    reason: "/dev/net/tun is useless without CAP_NET_ADMIN.",
  },
  {
    runc: /^setting (pids\/)?pids\.max 64$/,
    crun: /^setting (pids\/)?pids\.max 65$/,
    reason: "crun itself is one of the group's processes.",
  },
  {
    runc: /^mount \/ \/(proc\/acpi|proc\/scsi|sys\/firmware|sys\/devices\/virtual\/powercap) ro,relatime - tmpfs tmpfs ro/,
    crun: /^mount \/ \/(proc\/acpi|proc\/scsi|sys\/firmware|sys\/devices\/virtual\/powercap) ro,relatime - tmpfs tmpfs rw,size=0k/,
    reason: "Both are empty and read-only: one as a file system, the other as a mount.",
  },
  {
    runc: /^mount \/null \/proc\/\w+ rw,(nosuid|relatime) - (dev)?tmpfs /,
    crun: /^mount \/null \/proc\/\w+ ro,relatime - devtmpfs /,
    reason: "Both mask it: one with the sandbox's /dev/null, the other with the machine's, read-only.",
  },
  {
    runc: /^mount \/\w+ \/dev\/\w+ rw,relatime - devtmpfs /,
    crun: /^mount \/\w+ \/dev\/\w+ rw,nosuid,noexec,relatime - devtmpfs /,
    reason: "Devices in a user namespace are the machine's; no program needs to be executed from them.",
  },
  {
    runc: /^mount \/[\w-]+ \/proc\/[\w-]+ ro,nosuid,nodev,noexec,relatime - proc proc /,
    crun: /^mount \/[\w-]+ \/proc\/[\w-]+ ro,relatime - proc proc /,
    reason: "Files of procfs are neither devices nor programs.",
  },
  {
    runc: /^mount \/ \/sys\S* (ro|rw),nosuid,nodev,noexec,relatime - (sysfs sysfs|tmpfs tmpfs|cgroup2? \S+) /,
    crun: /^mount \/ \/sys\S* ro,nosuid,nodev,noexec,relatime - (sysfs sysfs|tmpfs tmpfs|cgroup2? \S+) /,
    reason: "runc mounts them and covers them with a read-only copy; crun mounts them read-only.",
  },
];

describe.each(users)("as %s", (who) => {
  let attacker: Attacker;
  const outputs: Record<string, string[]> = {};
  beforeAll(async () => {
    attacker = makeAttacker(who);
    await attacker.importImage("looks:1");
    const script = Object.entries(queries).map(
      ([name, query]) => `{ ${query}\n} | while read -r line; do echo "${name} $line"; done`,
    );
    const limits = ["--memory", "64m", "--pids", "64"];
    for (const runtime of usableRuntimes({ inUserNamespace: who !== "root" })) {
      const words = ["run", "-D", "-s", ...limits, "--use", "tag:looks:1", "--", script.join("\n")];
      const { stdout, stderr, exitCode } = await attacker.run(words, { BOUGH_RUNTIME: runtime });
      if (exitCode !== 0) throw new Error(stderr);
      outputs[runtime] = stdout.trimEnd().split("\n");
    }
  });
  afterAll(() => attacker.close());

  test("the outputs with runc and crun differ only for a reason", () => {
    const { runc = [], crun = runc } = outputs;
    expect(runc.length).toBeGreaterThan(150);
    const explained = (side: "runc" | "crun") => (line: string) =>
      differences.some((difference) => difference[side]?.test(line));
    const only = (lines: readonly string[], others: readonly string[], side: "runc" | "crun") =>
      lines.filter((line) => !others.includes(line) && !explained(side)(line));
    expect({ runc: only(runc, crun, "runc"), crun: only(crun, runc, "crun") }).toEqual({
      runc: [],
      crun: [],
    });
  });

  test("no system file is writable except the command's own", () => {
    for (const lines of Object.values(outputs))
      expect(lines.filter((line) => line.startsWith("written "))).toEqual([
        "written /proc/keys",
        "written /dev/x",
        "written /proc/self/oom_score_adj",
      ]);
  });

  test("no mount is writable except the root, those in memory, and the command's own files", () => {
    for (const lines of Object.values(outputs)) {
      const writable = lines.flatMap((line) => /^mount \S+ (\S+) rw\b/.exec(line)?.[1] ?? []);
      const others = writable.filter(
        (path) => !/^\/(proc(\/\w+)?|dev(\/\w+)?|etc\/(hosts|resolv\.conf))?$/.test(path),
      );
      // runc covers these with a read-only mount.
      expect(others.filter((path) => path !== "/sys/fs/cgroup")).toEqual([]);
    }
  });
});
