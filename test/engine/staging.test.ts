import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openSharedEngine } from "../support/shared-engine.ts";

/** An image whose directories are links of every kind. */
function prepare(root: string): void {
  mkdirSync(join(root, "usr/lib"));
  symlinkSync("usr/lib", join(root, "lib"));
  symlinkSync("/usr/lib", join(root, "absolute"));
  symlinkSync("../../../../../../../usr/lib", join(root, "above"));
  symlinkSync("absolute", join(root, "chain"));
  symlinkSync("/etc/later", join(root, "dangling"));
  symlinkSync("loop", join(root, "loop"));
  writeFileSync(join(root, "usr/lib/target"), "old");
  symlinkSync("target", join(root, "usr/lib/link"));
  symlinkSync("/etc/passwd", join(root, "usr/lib/outward"));
}

const { engine, base } = await openSharedEngine({ prepare });
const { uuid: content } = await engine.upload("new");

const stage = (path: string, command: string, details = {}) =>
  engine.run(base, command, {
    files: { [path]: { uuid: content, uid: 0, gid: 0, mode: "0644", ...details } },
  });

describe("a staged file is placed in the image", () => {
  test.each([
    ["at a plain path", "/opt/f", "/opt/f"],
    ["through a relative link", "/lib/f", "/usr/lib/f"],
    ["through an absolute link", "/absolute/f", "/usr/lib/f"],
    ["through a link that climbs above the root", "/above/f", "/usr/lib/f"],
    ["through links to links", "/chain/deep/f", "/usr/lib/deep/f"],
    ["through a dangling link, whose target is made", "/dangling/f", "/etc/later/f"],
    ["at a path that climbs above the root", "/../../f", "/f"],
    ["at a path that goes through a link and up", "/lib/../f", "/usr/f"],
    ["with an odd name", "/a b/\n\\é'\"$x", "/a b/\n\\é'\"$x"],
    ["in place of a file", "/usr/lib/target", "/usr/lib/target"],
  ])("%s", async (_name, path, landed) => {
    const finished = await stage(path, 'cat "$WHERE"', {});
    expect(finished.operation.error).toBeNull();
    const read = await engine.run(finished.image ?? "", 'cat "$WHERE"', { env: { WHERE: landed } });
    expect(read.stdout).toBe("new");
  });
});

test("a link at the destination is replaced, and its target stays unchanged", async () => {
  const finished = await stage(
    "/usr/lib/outward",
    "head -n 1 /etc/passwd; readlink /usr/lib/outward; cat /usr/lib/outward",
  );
  expect(finished.stdout).toBe("root:x:0:0:root:/root:/bin/sh\nnew");
});

test("missing parents are made with root as owner and mode 0755", async () => {
  const finished = await stage("/p/q/f", "stat -c '%n %a %u:%g' /p /p/q /p/q/f", {
    uid: 7,
    gid: 8,
    mode: "600",
  });
  expect(finished.stdout).toBe("/p 755 0:0\n/p/q 755 0:0\n/p/q/f 600 7:8\n");
});

test("mode bits beyond the permissions are kept", async () => {
  expect((await stage("/f", "stat -c %a /f", { uid: 7, gid: 8, mode: "6755" })).stdout).toBe("6755\n");
});

test("a command that writes to a staged file does not change the stored content", async () => {
  await stage("/f", "echo changed >> /f");
  expect((await stage("/f", "cat /f")).stdout).toBe("new");
});

test("a directory at the path, a file on the way or circular links fail the operation", async () => {
  const failures = ["/usr/lib", "/usr/lib/target/f", "/loop/f"];
  const errors = await Promise.all(failures.map(async (path) => (await stage(path, "true")).operation.error));
  expect(errors).toEqual([
    "cannot put a file at /usr/lib: there is a directory in the image",
    "cannot put a file at /usr/lib/target/f: /usr/lib/target in the image is not a directory",
    "/loop: too many symbolic links in the image",
  ]);
});

test("a large file and 500 small ones can be staged together", async () => {
  const large = await engine.upload(new Uint8Array(3_000_000).fill(65));
  const files = Object.fromEntries(
    Array.from({ length: 500 }, (_, index) => [
      `/many/${index % 10}/${index}`,
      { uuid: index === 0 ? large.uuid : content, uid: 0, gid: 0, mode: "0644" },
    ]),
  );
  const finished = await engine.run(base, "find /many -type f | wc -l; wc -c < /many/0/0", { files });
  expect(finished.stdout).toBe("500\n3000000\n");
});
