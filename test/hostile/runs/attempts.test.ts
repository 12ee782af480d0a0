/** Attempts of a command to leave its sandbox, or to see what belongs to others. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { tinyProgram } from "../../support/tiny-program.ts";
import { type Attacker, makeAttacker, users, type WatchedCanary } from "../attacker.ts";

/** Shell commands that succeed if the sandbox does not stop them. */
const attempts: [name: string, command: string][] = [
  ["mounts a file system", "mount -t tmpfs none /mnt"],
  ["makes /proc/sys writable", "mount -o remount,rw /proc/sys"],
  ["mounts another /proc, unmasked", "mkdir /p && mount -t proc proc /p"],
  ["takes the mask off /proc/kcore", "umount /proc/kcore"],
  ["reads the machine's memory", "test $(head -c 64 /proc/kcore | wc -c) -gt 0"],
  ["reads the machine's memory through a device", "mknod /m c 1 1 && head -c 1 /m"],
  ["reads the machine's log", "mknod /k c 1 11 && head -c 1 /k || dmesg"],
  [
    "reads a disk",
    "for n in '8 0' '254 0' '259 0' '7 0'; do mknod /d b $n; head -c 1 /d && exit 0; rm /d; done; false",
  ],
  ["reads a disk through a device file of the image", "head -c 1 /disk"],
  ["makes a file system in user space", "mknod /f c 10 229 && : < /f"],
  ["allows itself all devices", "echo a > /sys/fs/cgroup/devices/devices.allow"],
  [
    "has a program run on the machine when its group ends",
    "echo /x > $(find /sys/fs/cgroup -name release_agent | head -n 1)",
  ],
  [
    "makes a control group",
    "mkdir /sys/fs/cgroup/x || mkdir $(find /sys/fs/cgroup -maxdepth 1 -type d | tail -n 1)/x",
  ],
  [
    "raises its limits",
    "for f in memory/memory.limit_in_bytes memory.max pids/pids.max pids.max; do echo 9000000000 > /sys/fs/cgroup/$f && exit 0; done; false",
  ],
  [
    "leaves its control group",
    "for f in $(find /sys/fs/cgroup -name cgroup.procs); do echo 0 > $f && exit 0; done; false",
  ],
  [
    "makes its control groups writable",
    "mount -o remount,rw /sys/fs/cgroup || mount -t cgroup2 none /mnt || umount /sys/fs/cgroup",
  ],
  ["has a program run on the machine when one crashes", "echo '|/x' > /proc/sys/kernel/core_pattern"],
  ["has a program run on the machine for a module", "echo /x > /proc/sys/kernel/modprobe"],
  ["has a program run on the machine for a device", "echo /x > /sys/kernel/uevent_helper"],
  ["writes to /proc/sys by another path", "echo x > /proc/self/root/proc/sys/kernel/domainname"],
  ["restarts the machine", "echo c > /proc/sysrq-trigger"],
  ["changes an interrupt", "echo 1 > /proc/irq/default_smp_affinity"],
  ["reads the machine's keys", "test $(cat /proc/keys | wc -c) -gt 0"],
  ["watches others' work by interrupts", "test $(cat /proc/interrupts | wc -c) -gt 0"],
  ["watches others' work by timers", "test $(cat /proc/timer_list | wc -c) -gt 0"],
  ["watches others' work by power consumption", "ls /sys/devices/virtual/powercap | grep ."],
  ["reads the firmware's tables", "ls /sys/firmware | grep ."],
  ["writes to /sys", "echo x > /sys/kernel/mm/transparent_hugepage/enabled"],
  ["enters the mount namespace of process 1", "nsenter -t 1 -m ls /"],
  ["makes a user namespace", "unshare -U true || unshare -r true"],
  [
    "makes a namespace of another kind",
    "unshare -m true || unshare -n true || unshare -p true || unshare -i true",
  ],
  // busybox is `exe` for a moment when it starts one of its own programs.
  ["sees other processes", "cat /proc/[0-9]*/comm | grep -vE '^(sh|timeout|exe|cat|grep|attempt-[0-9]+)$'"],
  ["changes the machine's name", "hostname owned"],
  ["raises its own limits", "ulimit -n 100000000"],
  ["raises its priority", "nice -n -20 true"],
  ["protects itself from the OOM killer", "echo -1000 > /proc/self/oom_score_adj"],
  ["removes the files that are mounted for it", "rm /etc/hosts || mv /etc/resolv.conf /x"],
  ["overwrites runc through /proc/1/exe", "echo x > /proc/1/exe"],
];

const leaks: [name: string, command: string, found: RegExp][] = [
  [
    "a descriptor of bough or of its parent process",
    "ls -l /proc/self/fd /proc/1/fd",
    /-> (?!pipe:|\/proc\/|\/dev\/null)/,
  ],
  [
    "a directory of the machine through a descriptor",
    "for fd in /proc/1/fd/* /proc/self/fd/*; do ls $fd/; done",
    /canary|cgroup\./,
  ],
  ["a secret in an environment", "cat /proc/*/environ", /hush/],
  ["a secret in a command line", "cat /proc/*/cmdline", /hush/],
  ["a process of bough or runc", "cat /proc/*/comm", /bough|unshare|runc/],
];

describe.each(users)("as %s", (who) => {
  let attacker: Attacker;
  let canary: WatchedCanary;
  let outcomes: string[];
  beforeAll(async () => {
    attacker = makeAttacker(who);
    canary = attacker.layCanary();
    await attacker.importImage("attempts:1", {
      prepare(root) {
        mkdirSync(join(root, "mnt"));
        if (who === "root") Bun.spawnSync(["mknod", join(root, "disk"), "b", "254", "0"]);
        writeFileSync(join(root, "interpreted"), "#!/proc/self/exe\n");
        writeFileSync(join(root, "climb"), climb(canary.file));
        for (const [index, [, command]] of attempts.entries())
          writeFileSync(join(root, `attempt-${index}`), `#!/bin/sh\n${command}\n`);
        for (const name of readdirSync(root).filter((name) => /^(interpreted|climb|attempt-)/.test(name)))
          chmodSync(join(root, name), 0o755);
      },
    });
    const each = `for number in $(seq 0 ${attempts.length - 1}); do
      if timeout 20 /attempt-$number > /dev/null 2>&1; then echo got through; else echo refused; fi; done`;
    outcomes = (await attacker.attack("attempts:1", each)).stdout.split("\n");
  });
  afterAll(() => {
    const changes = canary.changes();
    attacker.close();
    expect(changes).toEqual([]);
  });

  test.each(attempts.map(([name], index) => [name, index] as const))("%s: refused", (_, index) => {
    expect(outcomes[index]).toBe("refused");
  });

  test.each(leaks)("does not find %s", async (_, command, found) => {
    // A careless shell starts bough with open descriptors without close-on-exec, and with secrets in the environment.
    const words = ["run", "-D", "-s", "--use", "tag:attempts:1", "--", `${command}; echo end`];
    const given = 'exec 7</ 8<"$1" 9<"$2"; shift 2; exec "$@"';
    const [program = "", ...before] = attacker.bough;
    const child = Bun.spawn(
      ["sh", "-c", given, "sh", canary.path, canary.file, program, ...before, ...words],
      {
        env: { ...process.env, CONTREE_TOKEN: "hush", SECRET: "hush" },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const stdout = await new Response(child.stdout).text();
    await child.exited;
    expect(stdout).toEndWith("end\n");
    expect(stdout).not.toMatch(found);
  });

  test("leaves a chroot, but gets no further than the sandbox's root", async () => {
    const { exitCode } = await attacker.attack("attempts:1", "/climb");
    // 2 is ENOENT: the canary's path does not exist in the highest directory that the program reaches.
    expect(exitCode).toBe(2);
  });

  test("kills only its own processes with kill -9 -1", async () => {
    const bystander = Bun.spawn(["sleep", "1000"]);
    const { exitCode } = await attacker.attack("attempts:1", "kill -9 -1; echo alive");
    expect(exitCode).toBe(0);
    expect(bystander.exitCode).toBe(null);
    bystander.kill();
    await bystander.exited;
  });

  test("does not change runc as a script with the interpreter /proc/self/exe", async () => {
    const runc = Bun.which("runc") ?? "";
    const before = new Bun.CryptoHasher("sha256").update(readFileSync(runc)).digest("hex");
    const inode = statSync(runc).ino;
    await attacker.run(["run", "-D", "--use", "tag:attempts:1", "--", "/interpreted", "init"]);
    expect(new Bun.CryptoHasher("sha256").update(readFileSync(runc)).digest("hex")).toBe(before);
    expect(statSync(runc).ino).toBe(inode);
  });

  test("does not change the machine's name and kernel settings", async () => {
    const settings = () =>
      ["core_pattern", "domainname", "hostname"].map((name) =>
        readFileSync(`/proc/sys/kernel/${name}`, "utf8"),
      );
    const before = settings();
    await attacker.attack("attempts:1", "for f in /proc/sys/kernel/*; do echo owned > $f; done");
    expect(settings()).toEqual(before);
    expect(hostname()).not.toBe("owned");
  });
});

/** Returns a program that leaves a chroot in the way that chroot(2) describes, then opens a file of the machine. */
function climb(file: string): Uint8Array {
  const up = Array.from({ length: 40 }, () => ({ x64: 80, arm64: 49, args: [".."] }));
  return tinyProgram([
    { x64: 161, arm64: 51, args: ["/tmp"] },
    ...up,
    { x64: 161, arm64: 51, args: ["."] },
    { x64: 257, arm64: 56, args: [-100, file, 0] },
  ]);
}
