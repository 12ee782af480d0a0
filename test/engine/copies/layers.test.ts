import { describe, expect, test } from "bun:test";
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { checkEngine } from "../../../src/engine/check/check.ts";
import { planPrune, prune } from "../../../src/engine/prune/prune.ts";
import { measureUsage } from "../../../src/engine/prune/usage.ts";
import { isOpaque, readAttributes, writeAttributes } from "../../../src/engine/system/xattrs.ts";
import type { ImageCopy } from "../../../src/service/wire/instance.ts";
import { TestEngine } from "../../support/engine.ts";
import { keeping } from "../../support/prune-selection.ts";
import { openSharedEngine } from "../../support/shared-engine.ts";

const { engine, base: busybox } = await openSharedEngine();

async function run(image: string, command: string): Promise<string> {
  const finished = await engine.run(image, command);
  if (finished.exitCode !== 0) throw new Error(finished.stderr);
  return finished.image ?? "";
}

async function copy(image: string, ...copies: ImageCopy[]): Promise<string> {
  const { operation, image: made } = await engine.run(image, "", { copies });
  if (operation.status !== "SUCCESS") throw new Error(operation.error ?? "");
  return made ?? "";
}

async function show(image: string, command: string): Promise<string> {
  const { stdout, stderr } = await engine.run(image, command, { disposable: true });
  return `${stdout}${stderr}`.trim();
}

/** Returns the directory of the newest layer, which has the highest number. */
function newestLayer(): string {
  const names = [...new Bun.Glob("*").scanSync({ cwd: join(engine.directory, "layers"), onlyFiles: false })];
  const newest = names.map((name) => Number.parseInt(name, 36)).sort((one, other) => other - one)[0] ?? 0;
  return join(engine.directory, "layers", newest.toString(36));
}

describe("files that layers share by hard links", () => {
  test("are copied when a command changes them", async () => {
    const source = await run(busybox, "mkdir /a; echo one > /a/f; chmod 4755 /a/f");
    const original = lstatSync(join(newestLayer(), "a/f"));
    const copied = await copy(busybox, { image: source, sources: ["/a"], destination: "/b" });
    expect(lstatSync(join(newestLayer(), "b/f"))).toMatchObject({
      ino: original.ino,
      mtimeMs: original.mtimeMs,
    });

    const request = { copies: [{ image: source, sources: ["/a"], destination: "/b" }] };
    const written = await engine.run(busybox, "echo two >> /b/f; chmod 600 /b/f", request);
    const changed = await run(copied, "echo three >> /b/f; chown 5 /b/f");
    expect(await show(written.image ?? "", "cat /b/f; stat -c %a /b/f")).toBe("one\ntwo\n600");
    expect(await show(changed, "cat /b/f; stat -c %u /b/f")).toBe("one\nthree\n5");
    for (const image of [source, copied])
      expect(await show(image, "cat /[ab]/f; stat -c '%a %u' /[ab]/f")).toBe("one\n4755 0");
  });

  test("do not include a file that is a source of its own: a command sees one link", async () => {
    const source = await run(busybox, "mkdir /s; echo x > /s/a; ln /s/a /s/b");
    const copied = await copy(busybox, { image: source, sources: ["/s/a"], destination: "/t/" });
    const matched = await copy(busybox, { image: source, sources: ["/s/*"], destination: "/t/" });
    expect(await show(copied, "stat -c '%h %n' /t/*")).toBe("1 /t/a");
    expect(await show(matched, "stat -c '%h %n' /t/*")).toBe("1 /t/a\n1 /t/b");
  });

  test.each([
    ["names of one file in one source stay one file", ["/s"], ["/t"], "1"],
    ["names of one file that are separate sources become separate files", ["/s/a", "/s/b"], ["/t/"], "2"],
    ["two copies of one file become separate files", ["/s/a"], ["/t/a", "/t/b"], "2"],
    ["two copies of one directory become separate files", ["/s"], ["/t/a", "/t/b"], "2"],
  ])("%s", async (_, sources, destinations, expected) => {
    const source = await run(busybox, "mkdir /s; echo x > /s/a; ln /s/a /s/b");
    const copies = destinations.map((destination) => ({ image: source, sources, destination }));
    expect(
      await show(await copy(busybox, ...copies), "find /t -type f | xargs stat -c %i | sort -u | wc -l"),
    ).toBe(expected);
    const owned = copies.map((each) => ({ ...each, uid: 7 }));
    expect(
      await show(await copy(busybox, ...owned), "find /t -type f | xargs stat -c '%i %u' | sort -u | wc -l"),
    ).toBe(expected);
  });

  test("are separate files in an image if they were copied by separate requests", async () => {
    const source = await run(busybox, "mkdir /a; echo x > /a/f");
    const once = await copy(busybox, { image: source, sources: ["/a"], destination: "/b" });
    const twice = await copy(once, { image: source, sources: ["/a"], destination: "/c" });
    const back = await copy(source, { image: once, sources: ["/b"], destination: "/c" });
    const itself = await copy(source, { image: source, sources: ["/a"], destination: "/d" });
    expect(await show(twice, "stat -c %i /b/f /c/f | sort -u | wc -l")).toBe("2");
    expect(await show(back, "stat -c %i /a/f /c/f | sort -u | wc -l")).toBe("2");
    expect(await show(itself, "stat -c %i /a/f /d/f | sort -u | wc -l")).toBe("2");
  });

  test("count once in usage, and are freed with their last name", async () => {
    const own = await TestEngine.open();
    try {
      const base = await own.importBase();
      const source = await own.run(
        base,
        "mkdir /big; dd if=/dev/urandom of=/big/f bs=1M count=4 2> /dev/null",
      );
      const before = (await measureUsage(own.directory, keeping())).layers.bytes;
      const copies = [{ image: source.image ?? "", sources: ["/big"], destination: "/copy" }];
      const copied = await own.run(base, "", { copies });
      expect((await measureUsage(own.directory, keeping())).layers.bytes - before).toBeLessThan(1024 * 1024);

      const keepCopy = keeping(base, copied.image ?? "");
      expect((await planPrune(own.directory, keepCopy)).layers.bytes).toBeLessThan(1024 * 1024);
      await prune(own.directory, keepCopy);
      expect((await own.run(copied.image ?? "", "wc -c < /copy/f")).stdout.trim()).toBe(
        String(4 * 1024 * 1024),
      );
      const check = { signal: new AbortController().signal, onProgress() {} };
      expect((await checkEngine(own.directory, check)).damage).toEqual([]);
      const freed = await prune(own.directory, keeping(base));
      expect(freed.layers.bytes).toBeGreaterThanOrEqual(4 * 1024 * 1024);
    } finally {
      await own.close();
    }
  });
});

test("a copy of merged layers has no removed files", async () => {
  const first = await run(
    busybox,
    "mkdir -p /s/gone /s/new /s/kept; touch /s/gone/a /s/new/old /s/kept/a /s/file /s/kept/b",
  );
  const second = await run(
    first,
    "rm -r /s/gone /s/file; rm -r /s/new; mkdir /s/new; touch /s/new/c; rm /s/kept/a",
  );
  const third = await run(
    second,
    "mkdir /s/file; touch /s/file/d /s/kept/e; rm -r /s/kept; mkdir /s/kept; touch /s/kept/f",
  );
  const copied = await copy(busybox, { image: third, sources: ["/s"], destination: "/t" });
  expect(await show(copied, "cd /t; find . | sort")).toBe(
    "./file\n./file/d\n./kept\n./kept/f\n./new\n./new/c".replace(/^/, ".\n"),
  );
  // The copy also works over paths that the image itself has removed.
  const over = await copy(third, { image: first, sources: ["/s"], destination: "/again" });
  const onto = await copy(over, { image: first, sources: ["/s/gone"], destination: "/s/gone" });
  expect(await show(onto, "ls /s/gone /s/new")).toBe("/s/gone:\na\n\n/s/new:\nc");
  expect(await show(onto, "cd /again; find . -type f | sort")).toBe(
    "./file\n./gone/a\n./kept/a\n./kept/b\n./new/old",
  );
});

test("a copy of a whole image has none of the sandbox's mounts", async () => {
  const source = await run(busybox, "mkdir -m 700 /only; echo x > /only/here");
  const copied = await copy(busybox, { image: source, sources: ["/"], destination: "/" });
  expect(await show(copied, "stat -c %a /only; cat /only/here; ls -d /.dockerenv 2>&1 | wc -l")).toBe(
    "700\nx\n1",
  );
  const { files } = await engine.json<{ files: { path: string }[] }>(
    "GET",
    `/v1/inspect/${copied}/list?path=/`,
  );
  expect(files.map(({ path }) => path).filter((path) => ["proc", "sys"].includes(path))).toEqual([]);
});

test("names that are not UTF-8 are copied", async () => {
  const source = await engine.importConfigured({
    prepare(root) {
      const make =
        "mkdir d; : > \"$(printf 'd/\\377')\"; mkdir \"$(printf 'd/\\376')\"; : > \"$(printf 'd/\\376/x')\"";
      Bun.spawnSync(["sh", "-c", make], { cwd: root });
    },
  });
  const copies = { image: source, sources: ["/d"], destination: "/e" };
  const listing = "cd /e; find . | sort | od -An -c | tr -d ' \\n'";
  const expected = ".\\n./376\\n./376/x\\n./377\\n";
  expect(await show(await copy(busybox, copies), listing)).toBe(expected);
  expect(await show(await copy(busybox, { ...copies, uid: 5 }), listing)).toBe(expected);
});

test("a copy of many files has their inodes, and the times and modes of their directories", async () => {
  const make = [
    "mkdir /s; cd /s",
    "for d in $(seq 60); do mkdir $d; for f in $(seq 100); do : > $d/$f; done; done",
    "touch \"$(printf '60/\\377')\"",
    "for d in $(seq 60); do touch -d @$((1000000 + d)) $d; done",
    "chmod 711 7; chown 7:8 7",
  ].join("; ");
  const source = await run(busybox, make);
  const find = (directory: string, type: string, format: string) => {
    const words = [
      "find",
      join(newestLayer(), directory),
      "-mindepth",
      "1",
      "-type",
      type,
      "-printf",
      format,
    ];
    return Bun.spawnSync(words).stdout.toString("latin1").split("\n").sort();
  };
  const describe = (directory: string) => [
    find(directory, "d", "%P %m %U %G %T@\\n"),
    find(directory, "f", "%P %m %U %G %T@ %i\\n"),
  ];
  const expected = describe("s");
  expect(expected.map((lines) => lines.length)).toEqual([61, 6_002]);
  const copied = await copy(busybox, { image: source, sources: ["/s"], destination: "/t" });
  expect(describe("t")).toEqual(expected);
  expect(await show(copied, "ls /t/60 | wc -l")).toBe("101");
});

test("a copy keeps capabilities and other extended attributes, except overlayfs's", async () => {
  const source = await run(busybox, "mkdir /s; cp /bin/busybox /s/ping; rm -r /var; mkdir /var");
  const capabilities = {
    name: "security.capability",
    value: Buffer.from("0100000200200000000000000000000000000000", "hex"),
  };
  const own = { name: "user.own", value: Buffer.from("value") };
  const layer = newestLayer();
  writeAttributes(join(layer, "s/ping"), [capabilities]);
  writeAttributes(join(layer, "s"), [own]);
  expect(isOpaque(join(layer, "var"), false)).toBe(true);
  for (const uid of [0, 5]) {
    await copy(busybox, { image: source, sources: ["/"], destination: "/t/", uid, gid: uid });
    expect(readAttributes(join(newestLayer(), "t/s/ping"))).toEqual([capabilities]);
    expect(readAttributes(join(newestLayer(), "t/s"))).toEqual([own]);
    expect(isOpaque(join(newestLayer(), "t/var"), false)).toBe(false);
  }
});
