/** Malicious sources, caches and targets of mounts: they reach no file of this machine, and leave nothing in an image. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, lstatSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { InstanceMount } from "../../../src/service/wire/mount.ts";
import { temporaryDirectory } from "../../support/bough.ts";
import { openInput, TestEngine } from "../../support/engine.ts";
import { openUserEngine } from "../../support/user-engine.ts";

describe.each(["root", "an ordinary user"])("as %s", (who) => {
  let engine: TestEngine;
  let base: string;
  let hostile: string;
  /** A directory of this machine that the links lead to. */
  let outside: string;
  beforeAll(async () => {
    outside = temporaryDirectory();
    writeFileSync(join(outside, "canary"), "this machine's\n");
    Bun.spawnSync(["chmod", "-R", "a+rwX", outside]);
    engine = await (who === "root" ? TestEngine.open() : openUserEngine());
    base = who === "root" ? await engine.importBase() : "tag:busybox:latest";
    const links = [
      `ln -s ${outside} /absolute`,
      `ln -s ../../../../../../../../..${outside} /relative`,
      "ln -s /proc/1/root /first; ln -s /proc/self/fd/7 /descriptor; ln -s circle /circle",
      "mkdir /d; ln -s /etc /d/etc; ln -s /proc /d/proc; ln -s / /d/root; ln -s /dev/pts /d/pts; ln -s /sys/fs /d/sys",
      "ln -s /proc/self/fd/7 /d/descriptor; mkfifo /d/pipe",
    ];
    hostile = (await engine.run(base, links.join("; "))).image ?? "";
  }, 180_000);
  afterAll(() => engine.close());

  const tmpfs = (target: string): InstanceMount<string> => ({ target, type: "tmpfs" });
  const bind = (target: string, source: string, readonly = true): InstanceMount<string> => ({
    ...{ target, type: "bind", image: hostile, source, readonly },
  });
  const cache = (target: string, id: string, more: object = {}): InstanceMount<string> => ({
    ...{ target, type: "cache", id, sharing: "shared", ...more },
  });
  const secret = (target: string): InstanceMount<string> => ({ target, type: "secret", value: "czNjcmV0" });

  /** `outcome`: the command's output, or the beginning of the error. */
  const rows: [what: string, mounts: () => InstanceMount<string>[], command: string, outcome: string][] = [
    [
      "a target by an absolute link",
      () => [tmpfs("/absolute/t")],
      "touch /absolute/t/x; ls /absolute",
      "t\n",
    ],
    [
      "a target by a relative link",
      () => [secret("/relative/t")],
      "cat /relative/t; ls /relative",
      "s3crett\n",
    ],
    [
      "a target that is a link",
      () => [bind("/absolute", "/etc")],
      "ls /absolute/passwd",
      "/absolute/passwd\n",
    ],
    ["a target with ..", () => [tmpfs("/d/../../../t/..//../u")], "ls -d /u", "/u\n"],
    [
      "a target by a link to itself",
      () => [tmpfs("/circle/t")],
      "true",
      "/circle/t: too many symbolic links",
    ],
    ["the target /proc", () => [tmpfs("/proc")], "true", "cannot mount at /proc: the sandbox has its own"],
    [
      "a target below /proc by a link",
      () => [tmpfs("/first/t")],
      "true",
      "cannot mount at /first/t, which leads to /proc/1/root/t",
    ],
    [
      "a target in /sys by a link in a mount",
      () => [bind("/m", "/d"), tmpfs("/m/sys")],
      "true",
      "cannot mount at /m/sys, which leads to /sys/fs",
    ],
    ["the target /dev", () => [tmpfs("/dev")], "true", "cannot mount at /dev: the sandbox has its own"],
    [
      "the root as a target by a link in a mount",
      () => [bind("/m", "/d"), tmpfs("/m/root")],
      "true",
      "cannot mount at /m/root, which leads to /",
    ],
    [
      "a target in /etc by a link in a mount",
      () => [bind("/m", "/d"), tmpfs("/m/etc/new")],
      "ls -d /etc/new /m/etc/new",
      "/etc/new\n/m/etc/new\n",
    ],
    [
      "resolv.conf in a tmpfs and as a secret",
      () => [tmpfs("/etc"), secret("/etc/resolv.conf")],
      "cat /etc/resolv.conf",
      "s3cret",
    ],
    [
      "a source by an absolute link",
      () => [bind("/m", "/absolute")],
      "true",
      "cannot mount at /m: /absolute is not in the source image",
    ],
    [
      "a source by a relative link",
      () => [bind("/m", "/relative/canary")],
      "true",
      "cannot mount at /m: /relative/canary is not in",
    ],
    [
      "a source by /proc",
      () => [bind("/m", "/first/etc")],
      "true",
      "cannot mount at /m: /first/etc is not in the source image",
    ],
    [
      "a source that is a pipe",
      () => [bind("/m", "/d/pipe")],
      "true",
      "cannot mount at /m: /d/pipe is neither a file nor",
    ],
    ["a source with ..", () => [bind("/m", "/d/../../../../d")], "ls -d /m/pipe", "/m/pipe\n"],
    ["a cache of an id with ..", () => [cache("/c", "../../../etc")], "ls /c; touch /c/x", ""],
    [
      "a cache that begins with a link out",
      () => [cache("/c", "new", { image: hostile, source: "/absolute" })],
      "true",
      "cannot fill the cache at /c from",
    ],
    [
      "a cache that begins with a directory of links",
      () => [cache("/c", "begins", { image: hostile, source: "/d" })],
      "readlink /c/descriptor",
      "/proc/self/fd/7\n",
    ],
    [
      "a target by a link in a cache",
      () => [cache("/c", "begins", { image: hostile, source: "/d" }), tmpfs("/c/etc/t")],
      "ls -d /etc/t",
      "/etc/t\n",
    ],
    [
      "a target in /proc by a link in a cache",
      () => [cache("/c", "begins", { image: hostile, source: "/d" }), tmpfs("/c/proc/t")],
      "true",
      "cannot mount at /c/proc/t, which leads to /proc/t",
    ],
  ];
  test.each(rows)("%s", async (_, mounts, command, outcome) => {
    const { operation, stdout, image } = await engine.run(hostile, command, { mounts: mounts() });
    if (operation.error === null) {
      expect(stdout).toBe(outcome);
      expect(image).toBe(hostile);
    } else expect(operation.error).toStartWith(outcome);
    expect(readdirSync(outside)).toEqual(["canary"]);
  });

  test.each<[what: string, cwd: string, mounts: () => InstanceMount<string>[], message: string]>([
    [
      "by a link in a mount",
      "/m/descriptor",
      () => [bind("/m", "/d")],
      "the working directory cannot be /m/descriptor, which leads to /proc/self/fd/7",
    ],
    [
      "by a link in a cache",
      "/c/descriptor",
      () => [cache("/c", "begins", { image: hostile, source: "/d" })],
      "the working directory cannot be /c/descriptor, which leads to /proc/self/fd/7",
    ],
    [
      "below a cache that others may change",
      "/c/x",
      () => [cache("/c", "cwd")],
      "the working directory cannot be /c/x: other commands may change the cache there",
    ],
  ])("a working directory %s is refused", async (_, cwd, mounts, message) => {
    const { operation } = await engine.run(hostile, "true", { cwd, mounts: mounts() });
    expect(operation.error).toStartWith(message);
  });

  test("a working directory may be a cache, or below a locked one", async () => {
    expect((await engine.run(base, "pwd", { cwd: "/c", mounts: [cache("/c", "cwd")] })).stdout).toBe("/c\n");
    const locked = [cache("/c", "cwd", { sharing: "locked" })];
    expect((await engine.run(base, "pwd", { cwd: "/c/x", mounts: locked })).stdout).toBe("/c/x\n");
  });

  test("a cache's directory that another command keeps replacing by a link never leads out", async () => {
    const swap =
      "mkdir /c/d; while mv /c/d /c/e; do ln -s / /c/d; rm /c/d; mv /c/e /c/d; [ -e /c/end ] && exit; done";
    const swapping = engine.run(base, swap, { mounts: [cache("/c", "swapped")] });
    const outcomes = new Set<string>();
    for (let attempt = 0; attempt < 25; attempt++) {
      const mounts = [cache("/m", "swapped", { source: "/d" })];
      const { operation, stdout } = await engine.run(base, "ls -A /m", { mounts, disposable: true });
      outcomes.add(operation.error === null ? stdout : "an error");
    }
    await engine.run(base, "touch /c/end", { mounts: [cache("/c", "swapped")], disposable: true });
    await swapping;
    expect([...outcomes].filter((outcome) => !["", "an error"].includes(outcome))).toEqual([]);
  });

  test("a subprocess is refused a working directory by a link in a mount", async () => {
    const started = await engine.start({
      ...{ image: hostile, command: "read line", stdin: openInput, mounts: [bind("/m", "/d")] },
    });
    const exec = { command: "true", shell: true, cwd: "/m/descriptor" };
    const response = await engine.fetch("POST", `/v1/operations/${started.uuid}/subprocesses`, exec);
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining("/proc/self/fd/7"),
    ]);
    await engine.closeInput(started);
    await engine.finish(started);
  });

  test("a command can have 1000 mounts", async () => {
    const mounts = Array.from({ length: 1000 }, (_, index): InstanceMount<string> => {
      const target = `/many/${index}`;
      const kinds = [tmpfs(target), bind(target, "/d"), bind(target, "/etc/passwd"), secret(target)];
      return kinds[index % kinds.length] ?? tmpfs(target);
    });
    const ended = await engine.run(hostile, "ls /many | wc -l; cat /many/999; ls /many/1", { mounts });
    expect([ended.operation.error, ended.stdout]).toEqual([
      null,
      "1000\ns3cretdescriptor\netc\npipe\nproc\npts\nroot\nsys\n",
    ]);
    expect(ended.image).toBe(hostile);
  });

  test("a command that unmounts and moves its mounts leaves no secret, and changes no file outside", async () => {
    const mounts = [bind("/m/a", "/d", false), tmpfs("/m/b"), secret("/s")];
    const command = `umount /m/a; rm -rf /m /s; mv /m/b /x; mv /m /n; ln -s ${outside} /m; ls -d /n/* | wc -l`;
    const { image, operation } = await engine.run(base, command, { mounts });
    expect(operation.error).toBeNull();
    const { stdout } = await engine.run(image ?? "", "ls -d /m /n /s /x; find /n; readlink /m");
    expect(stdout).not.toContain("/s\n");
    expect(readdirSync(outside)).toEqual(["canary"]);
    expect(existsSync(join(outside, "a"))).toBe(false);
    expect(lstatSync(join(outside, "canary")).size).toBe(15);
  });
});
