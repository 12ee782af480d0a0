/** The mounts of a command, which leave nothing in its result, as root and as an ordinary user. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { InstanceMount } from "../../../src/service/wire/mount.ts";
import { TestEngine } from "../../support/engine.ts";
import { openUserEngine } from "../../support/user-engine.ts";

describe.each(["root", "an ordinary user"])("as %s", (who) => {
  let engine: TestEngine;
  let base: string;
  let source: string;
  beforeAll(async () => {
    if (who === "root") {
      engine = await TestEngine.open();
      base = await engine.importBase();
    } else {
      engine = await openUserEngine();
      base = "tag:busybox:latest";
    }
    const commands = [
      "mkdir -p /s/d",
      "echo a > /s/a; echo b > /s/d/b; chmod 640 /s/a; chown 5:6 /s/a",
      "ln -s a /s/l; ln -s /s/d /way; ln -s ../../../../s/a /s/out",
    ];
    source = (await engine.run(base, commands.join("; "))).image ?? "";
  }, 180_000);
  afterAll(() => engine.close());

  /** The files of layers and of operations in the engine's directory. */
  const stored = () => {
    const directory = who === "root" ? engine.directory : join(engine.directory, ".local/state/bough/engine");
    return ["layers", "operations"]
      .flatMap((name) => readdirSync(join(directory, name), { recursive: true, encoding: "utf8" }))
      .sort();
  };

  const image = (path = "/s") => ({ type: "bind", image: source, source: path, readonly: true }) as const;
  const text = async (content: string, mode = "0644", ids = { uid: 0, gid: 0 }) => ({
    ...{ uuid: (await engine.upload(content)).uuid, mode, ...ids },
  });
  const files = async () =>
    ({
      type: "bind",
      files: { a: await text("a\n", "0640", { uid: 5, gid: 6 }), "d/b": await text("b\n") },
      entries: {
        "": { type: "directory", mode: "0750", uid: 7, gid: 8 },
        d: { type: "directory", mode: "0700", uid: 0, gid: 0 },
        l: { type: "symlink", target: "a", uid: 0, gid: 0 },
      },
      readonly: true,
    }) as const;
  const secret = (value: string) =>
    ({ type: "secret", value: Buffer.from(value).toString("base64") }) as const;
  type Row = [
    what: string,
    mounts: () => InstanceMount<string>[] | Promise<InstanceMount<string>[]>,
    command: string,
    stdout: string,
  ];

  const rows: Row[] = [
    [
      "a directory of an image",
      () => [{ target: "/m", ...image() }],
      "cd /m; cat a d/b l; stat -c '%a %u:%g' a",
      "a\nb\na\n640 5:6\n",
    ],
    [
      "a whole image",
      () => [{ target: "/m", ...image("/") }],
      "cat /m/s/a; [ -e /m/etc/hosts ] || echo nothing more",
      "a\nnothing more\n",
    ],
    ["a file of an image", () => [{ target: "/m/f", ...image("/s/a") }], "cat /m/f", "a\n"],
    ["a source below links", () => [{ target: "/m", ...image("/way") }], "cat /m/b", "b\n"],
    [
      "a source link that leads above the root",
      () => [{ target: "/m", ...image("/s/out") }],
      "cat /m",
      "a\n",
    ],
    [
      "a read-only bind mount",
      () => [{ target: "/m", ...image() }],
      "echo x > /m/a || touch /m/new || echo no",
      "no\n",
    ],
    [
      "writable bind mounts, whose changes are discarded",
      () => [
        { target: "/m", ...image(), readonly: false },
        { target: "/n", ...image(), readonly: false },
        { target: "/o", ...image() },
      ],
      "echo x > /m/a; rm -r /m/d; cat /m/a /n/a /o/a; ls /m /n",
      "x\na\na\n/m:\na\nl\nout\n\n/n:\na\nd\nl\nout\n",
    ],
    [
      "files",
      async () => [{ target: "/m", ...(await files()) }],
      "cd /m; cat a d/b l; stat -c '%a %u:%g' . a d",
      "a\nb\na\n750 7:8\n640 5:6\n700 0:0\n",
    ],
    [
      "files, in memory of their own if they are read-only",
      async () => [
        { target: "/m", ...(await files()) },
        { target: "/n", ...(await files()), readonly: false },
      ],
      "for m in /m /n; do awk -v m=$m '$5 == m { print ($4 == \"/files\") }' /proc/self/mountinfo; done; touch /m/new || touch /n/new",
      "1\n0\n",
    ],
    [
      "a single file",
      async () => [
        {
          ...{ target: "/m/f", type: "bind", readonly: true },
          files: { "": await text("lone\n", "0600", { uid: 5, gid: 6 }) },
        },
      ],
      "stat -c '%a %u:%g' /m/f; cat /m/f; echo x > /m/f || echo no",
      "600 5:6\nlone\nno\n",
    ],
    [
      "a writable file",
      async () => [{ target: "/m", type: "bind", readonly: false, files: { "": await text("one\n") } }],
      "echo two >> /m; cat /m",
      "one\ntwo\n",
    ],
    [
      "a tmpfs",
      () => [{ target: "/m", type: "tmpfs", size: 65_536 }],
      "stat -c %a /m; head -c 100000 /dev/zero > /m/z || wc -c < /m/z; df -k /m | awk 'END { print $2 }'",
      "1777\n65536\n64\n",
    ],
    [
      "a tmpfs on a directory, which keeps its mode",
      () => [{ target: "/etc", type: "tmpfs" }],
      "stat -c %a /etc; ls /etc",
      "755\n",
    ],
    [
      "a secret",
      () => [{ target: "/run/secrets/s", ...secret("s3cret") }],
      "stat -c '%a %u:%g' /run/secrets/s; cat /run/secrets/s; echo; echo x > /run/secrets/s || echo no",
      "400 0:0\ns3cret\nno\n",
    ],
    [
      "a secret for another user, and as a variable",
      () => [{ target: "/m", ...secret("s3cret"), mode: "0440", uid: 5, gid: 6, env: "VALUE" }],
      "stat -c '%a %u:%g' /m; cat /m; echo $VALUE",
      "440 5:6\ns3crets3cret\n",
    ],
    [
      "a secret only as a variable",
      () => [{ target: "/m", ...secret("s3cret"), isFile: false, env: "VALUE" }],
      "echo $VALUE; [ -e /m ] || echo no file",
      "s3cret\nno file\n",
    ],
    [
      "mounts in other mounts",
      async () => [
        { target: "/m", ...image() },
        { target: "/m/new/deep", type: "tmpfs" },
        { target: "/m/d", ...(await files()) },
        { target: "/m/d/c", type: "cache", id: "in another", sharing: "shared" },
      ],
      "cat /m/a /m/d/d/b; touch /m/new/deep/x /m/d/c/y; ls /m /m/new/deep /m/d",
      "a\nb\n/m:\na\nd\nl\nnew\nout\n\n/m/d:\na\nc\nd\nl\n\n/m/new/deep:\nx\n",
    ],
    [
      "the last of two mounts at one target",
      async () => [
        { target: "/m", ...image() },
        { target: "/m", ...(await files()) },
      ],
      "stat -c %a /m",
      "750\n",
    ],
    [
      "a later mount that covers an earlier one",
      () => [
        { target: "/m/d", type: "tmpfs" },
        { target: "/m", ...image() },
      ],
      "ls /m/d",
      "b\n",
    ],
    [
      "a target with .. on its way",
      () => [{ target: "/lib64/../lnk/x", type: "tmpfs" }],
      "ls -d /lnk /lnk/x",
      "/lnk\n/lnk/x\n",
    ],
    [
      "a tmpfs as shared memory",
      () => [{ target: "/dev/shm", type: "tmpfs", size: 4096 }],
      "df -k /dev/shm | awk 'END { print $2 }'; stat -c %a /dev/shm",
      "4\n1777\n",
    ],
    [
      "a file over resolv.conf",
      () => [{ target: "/etc/resolv.conf", ...image("/s/a") }],
      "cat /etc/resolv.conf",
      "a\n",
    ],
  ];
  test.each(rows)("%s", async (_, mounts, command, stdout) => {
    const ended = await engine.run(base, command, { mounts: await mounts() });
    expect([ended.operation.error, ended.stdout]).toEqual([null, stdout]);
    // The mount has not changed the image.
    expect(ended.image).toBe((await engine.run(base, "true")).image);
  });

  test("the working directory can be in a mount", async () => {
    const mounts = [{ target: "/m", ...image() }];
    expect((await engine.run(base, "pwd; cat b", { cwd: "/m/d", mounts })).stdout).toBe("/m/d\nb\n");
  });

  test.each<[what: string, command: string, more: object]>([
    ["fails", "exit 3", {}],
    ["runs out of time", "sleep 60", { timeout: 1 }],
    ["cannot be started", "/none", { shell: false }],
  ])("mounts leave nothing behind after a command that %s", async (_, command, more) => {
    const mounts: InstanceMount<string>[] = [
      { target: "/m/x", ...image() },
      { target: "/usr/m", ...secret("s3cret") },
      { target: "/etc/m", type: "cache", id: "left", sharing: "locked" },
    ];
    const ended = await engine.run(base, command, { mounts, ...more });
    expect([ended.operation.error, ended.exitCode === 0]).toEqual([null, false]);
    expect(ended.image).toBe((await engine.run(base, "true")).image);
  });

  test("files that the command makes next to mounts stay", async () => {
    const mounts = [
      { target: "/m/x/y", ...image() },
      { target: "/k/f", ...secret("s3cret") },
      { target: "/t", type: "tmpfs" as const },
    ];
    const { image: made } = await engine.run(base, "cp -r /m/x/y/d /m/x/kept; touch /t/gone", { mounts });
    const { stdout } = await engine.run(made ?? "", "find /m /k /t 2>/dev/null | sort");
    expect(stdout).toBe("/m\n/m/x\n/m/x/kept\n/m/x/kept/b\n");
  });

  test.each<[string, () => InstanceMount<string>[], string]>([
    [
      "a target that is a file",
      () => [{ target: "/etc/passwd", type: "tmpfs" }],
      "cannot mount at /etc/passwd: a directory cannot be mounted on a file",
    ],
    [
      "a file on a directory",
      () => [{ target: "/etc", ...image("/s/a") }],
      "cannot mount at /etc: a file cannot be mounted on a directory",
    ],
    [
      "a source that is missing",
      () => [{ target: "/m", ...image("/none") }],
      "cannot mount at /m: /none is not in the source image",
    ],
    [
      "a target below a file",
      () => [{ target: "/etc/passwd/x", type: "tmpfs" }],
      "/etc/passwd in the image is not a directory",
    ],
    [
      "a target below a mounted file",
      () => [
        { target: "/m", ...image("/s/a") },
        { target: "/m/x", type: "tmpfs" },
      ],
      "cannot mount at /m/x: /m is not a directory",
    ],
    [
      "/proc",
      () => [{ target: "/proc/self", type: "tmpfs" }],
      "cannot mount at /proc/self: the sandbox has its own files there",
    ],
  ])("%s is an error, which leaves nothing behind", async (_, mounts, message) => {
    const before = new Set(stored());
    const { operation, image } = await engine.run(base, "true", { mounts: mounts() });
    expect(operation.error).toContain(message);
    expect(image).toBeUndefined();
    // The engine removes an operation's directory in the background. One that stays ends the test by its time limit.
    while (stored().some((path) => !before.has(path))) await Bun.sleep(5);
  });
});
