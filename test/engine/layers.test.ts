import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSharedEngine } from "../support/shared-engine.ts";

const { engine, base } = await openSharedEngine();

describe("the next command finds the previous one's changes:", () => {
  test.each([
    ["a removed file stays removed", "rm /etc/passwd", "ls -d /etc/* | grep passwd; ls -d /etc", "/etc\n"],
    ["a removed directory stays removed", "rm -r /usr", "ls -d /usr 2>&1 | grep -c 'No such'", "1\n"],
    [
      "a directory that was removed and made again has no old content",
      "rm -r /usr; mkdir -p /usr/new",
      "find /usr",
      "/usr\n/usr/new\n",
    ],
    ["a file in place of a directory", "rm -r /usr; echo f > /usr", "cat /usr", "f\n"],
    ["a directory in place of a file", "rm /bin/wc; mkdir /bin/wc", "stat -c %F /bin/wc", "directory\n"],
    [
      "a renamed directory",
      "mv /usr /moved",
      "ls -d /usr /moved 2>/dev/null; ls /moved",
      "/moved\nbin\nsbin\n",
    ],
    ["hard links", "echo 1 > /a; ln /a /b; ln /a /c", "stat -c %h /a /c; cat /c", "3\n3\n1\n"],
    [
      "setuid, setgid and sticky bits",
      "mkdir /d; touch /f; chmod 7755 /d; chmod 6711 /f",
      "stat -c %a /d /f",
      "7755\n6711\n",
    ],
    ["owners", "touch /f; chown 1234:2345 /f; chown 7 /usr", "stat -c %u:%g /f /usr", "1234:2345\n7:0\n"],
    ["a changed mode alone", "chmod 400 /etc/group", "stat -c %a /etc/group", "400\n"],
    [
      "holes",
      "dd if=/dev/zero of=/sparse bs=1 count=1 seek=50M 2>/dev/null",
      "stat -c %s /sparse; du -k /sparse | cut -f1",
      "52428801\n4\n",
    ],
    [
      "a named pipe and a device",
      "mkfifo /p; mknod /n c 1 3",
      "stat -c '%F' /p /n; echo x > /n",
      "fifo\ncharacter special file\n",
    ],
    [
      "links with any target",
      "ln -s /no/where /l; ln -s .. /up",
      "readlink /l; readlink /up",
      "/no/where\n..\n",
    ],
    [
      "names with spaces, accents, dashes and line ends",
      "touch '/a b' /é /-r \"$(printf '/n\\nl')\"",
      'for f in /a* /é /-r /n*; do echo "[$f]"; done',
      "[/a b]\n[/é]\n[/-r]\n[/n\nl]\n",
    ],
    [
      "modification times",
      "touch -d '2001-02-03 04:05:06' /f",
      "stat -c %y /f | cut -c1-19",
      "2001-02-03 04:05:06\n",
    ],
  ])("%s", async (_name, change, look, seen) => {
    const changed = await engine.run(base, change);
    expect(changed.stderr).toBe("");
    expect((await engine.run(changed.image ?? "", look)).stdout).toBe(seen);
    // Another layer on top makes sure that layers are merged.
    const between = await engine.run(changed.image ?? "", "touch /var/between");
    expect((await engine.run(between.image ?? "", look)).stdout).toBe(seen);
  });

  test("extended attributes are imported, and copied up into a new layer", async () => {
    const marked = await engine.importConfigured({
      prepare(root) {
        writeFileSync(join(root, "marked"), "");
        const mark = "tar -c --format=posix --pax-option=SCHILY.xattr.user.kept:=yes marked";
        const shell = ["sh", "-ec", `${mark} | tar -x --xattrs --xattrs-include='*'`];
        expect(Bun.spawnSync(shell, { cwd: root }).stderr.toString()).toBe("");
      },
    });
    const { image } = await engine.run(marked, "chown 7 /marked");
    for (const uuid of [marked, image]) {
      const archive = await engine.fetch("GET", `/v1/inspect/${uuid}/archive?path=/marked`);
      expect(await archive.text()).toContain("SCHILY.xattr.user.kept=yes\n");
    }
  });
});

test("a later command does not change an earlier image", async () => {
  const first = await engine.run(base, "echo 1 > /f");
  await engine.run(first.image ?? "", "echo 2 > /f; rm /etc/passwd");
  expect((await engine.run(first.image ?? "", "cat /f; ls /etc/passwd")).stdout).toBe("1\n/etc/passwd\n");
});

test("an image can have 120 layers", async () => {
  let image = base;
  // Most layers are made without a sandbox, in a fraction of the time.
  for (let depth = 1; depth <= 100; depth++) {
    const copies = [{ image: base, sources: ["/etc/group"], destination: `/f${depth}` }];
    image = (await engine.run(image, "", { copies })).image ?? "";
  }
  for (let depth = 101; depth <= 120; depth++) {
    image = (await engine.run(image, `echo ${depth} > /depth; touch /f${depth}`)).image ?? "";
  }
  expect((await engine.run(image, "cat /depth; ls -d /f* | wc -l")).stdout).toBe("120\n120\n");
  const list = await engine.json<{ files: unknown[] }>("GET", `/v1/inspect/${image}/list?path=/`);
  expect(list.files.length).toBeGreaterThan(120);
}, 120_000);
