/** Images whose directories are links to those of this machine: nothing on it changes, and the links stay links. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { rowsFor } from "../../support/rows.ts";
import { type Attacker, makeAttacker, users, type WatchedCanary } from "../attacker.ts";

/** Leads from any directory of an image to its root, and beyond. */
const climb = "../".repeat(20);

/** Attacks: the path of a link in the image, and the link's target for a canary at the given path. */
const links: [name: string, link: string, target: (canary: string) => string][] = [
  ["/dev is a link to a directory of the machine", "dev", (canary) => canary],
  ["/dev climbs out of the image", "dev", (canary) => climb + canary.slice(1)],
  ["/dev leads to a missing directory", "dev", (canary) => `${canary}/deep/missing`],
  ["/proc is a link to a directory of the machine", "proc", (canary) => canary],
  ["/proc climbs out of the image", "proc", (canary) => climb + canary.slice(1)],
  ["/sys is a link to a directory of the machine", "sys", (canary) => canary],
  ["/sys climbs out of the image", "sys", (canary) => climb + canary.slice(1)],
  [
    "/etc/resolv.conf is a link to a file of the machine",
    "etc/resolv.conf",
    (canary) => `${canary}/resolv.conf`,
  ],
  [
    "/etc/resolv.conf climbs to a missing file",
    "etc/resolv.conf",
    (canary) => `${climb}${canary.slice(1)}/new`,
  ],
  ["/etc/resolv.conf leads into /proc", "etc/resolv.conf", (canary) => `/proc/1/root${canary}/resolv.conf`],
  ["/etc/resolv.conf leads into /dev", "etc/resolv.conf", () => "/dev/null"],
  ["/etc/hosts is a link to a file of the machine", "etc/hosts", (canary) => `${canary}/hosts`],
  ["/etc is a link to a directory of the machine", "etc", (canary) => canary],
  ["/root is a link to a directory of the machine", "root", (canary) => `${canary}/deep`],
];

/** Working directories that lead out of the image, and the sandbox's error, if it has one. */
const workingDirectories: [name: string, path: (canary: string) => string, message: RegExp | undefined][] = [
  // CVE-2024-21626: runc up to 1.1.11 has directories of the machine open when it changes to the working directory.
  ...[3, 4, 5, 6, 7, 8, 9, 10].map((fd): [string, () => string, RegExp] => [
    `/proc/self/fd/${fd}`,
    () => `/proc/self/fd/${fd}`,
    /the working directory cannot be \/proc\/self\/fd\/\d+\./,
  ]),
  ["a climb from /proc/self/fd/7", (canary) => `/proc/self/fd/7/../../../../..${canary}`, undefined],
  ["/dev/fd/7", () => "/dev/fd/7", /the working directory cannot be \/dev\/fd\/7\./],
  ["a link to /proc/self/fd/7", () => "/to-fd", /cannot be \/to-fd, which leads to \/proc\/self\/fd\/7\./],
  ["the root of the first process", (canary) => `/proc/1/root${canary}`, /the working directory cannot be/],
  ["a link to a directory of the machine", () => "/to-canary", undefined],
  ["a missing directory behind a link", () => "/to-canary/made", undefined],
];

describe.each(users)("as %s", (who) => {
  let attacker: Attacker;
  /** The canary of the image that several rows share. */
  let shared: WatchedCanary;
  beforeAll(async () => {
    attacker = makeAttacker(who, { inOneProcess: true });
    shared = attacker.layCanary();
    const directory = shared.path;
    await attacker.importImage("links:1", {
      prepare(root) {
        symlinkSync("/proc/self/fd/7", join(root, "to-fd"));
        symlinkSync(directory, join(root, "to-canary"));
        rmSync(join(root, "etc/resolv.conf"), { force: true });
        symlinkSync("/a/empty", join(root, "etc/resolv.conf"));
      },
    });
  });
  afterAll(() => attacker.close());

  const ofEachLink = [
    "/dev is a link to a directory of the machine",
    "/proc climbs out of the image",
    "/etc/resolv.conf is a link to a file of the machine",
    "/etc/resolv.conf leads into /proc",
    "/root is a link to a directory of the machine",
  ];
  test.each(rowsFor(who, links, ofEachLink))("%s", async (_, path, target) => {
    const canary = attacker.layCanary();
    const leads = target(canary.path);
    const tag = `link:${crypto.randomUUID()}`;
    await attacker.importImage(tag, { prepare: (root) => replaceByLink(root, path, leads) });
    const command = [
      "echo x > /dev/null && cat /etc/resolv.conf > /tmp/x",
      "test -d /proc/self && ls /dev/pts/ptmx",
      "ls -d /sys/kernel && touch /made",
    ].join(" && ");
    const made = await attacker.run(["run", "-s", "--use", `tag:${tag}`, "-C", "/root", "--", command]);
    expect(canary.changes()).toEqual([]);
    expect(made).toMatchObject({ exitCode: 0, stdout: "/dev/pts/ptmx\n/sys/kernel\n" });
    const listed = await attacker.run(["-f", "json", "ls", `/${dirname(path).replace(".", "")}`]);
    const entries: { name: string; target: string | null }[] = JSON.parse(listed.stdout);
    expect(entries.find(({ name }) => name === basename(path))).toMatchObject({ target: leads });
  });

  test("the files in /dev are links to those of the machine", async () => {
    const canary = attacker.layCanary();
    await attacker.importImage("dev:1", {
      prepare(root) {
        for (const name of ["pts", "shm", "mqueue"]) symlinkSync(canary.path, join(root, "dev", name));
        for (const name of ["null", "zero", "ptmx", "fd", "stdin", "stdout", "core"])
          symlinkSync(join(canary.path, name), join(root, "dev", name));
      },
    });
    const command = "echo x > /dev/null && echo x > /dev/shm/x && ls /dev/pts && head -c 0 /dev/zero";
    const ended = await attacker.attack("dev:1", command);
    expect(ended).toMatchObject({ exitCode: 0, stdout: "ptmx\n" });
    expect(canary.changes()).toEqual([]);
  });

  test.each([
    ["a file", (path: string) => writeFileSync(path, "")],
    ["a pipe", (path: string) => Bun.spawnSync(["mkfifo", path])],
  ])("/dev is %s", async (_, make) => {
    const tag = `dev:${crypto.randomUUID()}`;
    await attacker.importImage(tag, {
      prepare(root) {
        rmSync(join(root, "dev"), { recursive: true });
        make(join(root, "dev"));
      },
    });
    expect(await attacker.attack(tag, "echo x > /dev/null && echo done")).toMatchObject({ stdout: "done\n" });
  });

  test("an image whose /etc leads into /proc is refused", async () => {
    await attacker.importImage("etc:1", {
      prepare: (root) => replaceByLink(root, "etc", "/proc/1/root/etc"),
    });
    const { exitCode, stderr } = await attacker.attack("etc:1", "true");
    expect(exitCode).toBe(1);
    expect(stderr).toContain("cannot mount /etc/resolv.conf: /etc in the image leads to /proc/1/root/etc");
  });

  test("a command replaces the directory of a mount point by a link to the machine's", async () => {
    const { path: directory, changes } = shared;
    const moved = await attacker.run([
      ...["run", "-s", "--use", "tag:links:1", "--"],
      `mv /a /b && ln -s '${directory}' /a && echo moved`,
    ]);
    expect(moved).toMatchObject({ exitCode: 0, stdout: "moved\n" });
    expect(changes()).toEqual([]);
  });

  const ofEachDirectory = [
    "/proc/self/fd/7",
    "a link to /proc/self/fd/7",
    "the root of the first process",
    "a missing directory behind a link",
  ];
  test.each(rowsFor(who, workingDirectories, ofEachDirectory))(
    "the working directory is %s",
    async (_, path, message) => {
      const { stdout, stderr } = await attacker.attack(
        "links:1",
        "ls -a; ls ../../../../../..; ls -d ../../../../../../../usr/bin/*; touch left-behind",
        ...["-C", path(shared.path)],
      );
      if (message === undefined) expect(stderr).not.toContain("working directory");
      else expect(stderr).toMatch(message);
      expect(stdout).not.toMatch(/cgroup|ptmx|hollow|\/usr\/bin\/./);
      expect(shared.changes()).toEqual([]);
    },
  );
});

function replaceByLink(root: string, path: string, target: string): void {
  rmSync(join(root, path), { recursive: true, force: true });
  mkdirSync(dirname(join(root, path)), { recursive: true });
  symlinkSync(target, join(root, path));
}
