/**
 * The machine's mounts do not change when bough and its helper programs mount and unmount, even if all mounts are shared, as
 * systemd makes them. The tests run in their own mount namespace, in which all mounts are made shared.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { compileBough } from "../../support/compiled.ts";
import { makeOrdinaryUser, type OrdinaryUser } from "../../support/ordinary-user.ts";

let user: OrdinaryUser;
let layout: string;
beforeAll(async () => {
  layout = temporaryDirectory();
  await makeBusyboxLayout(layout);
  user = makeOrdinaryUser({ staysInNamespace: true });
  user.giveBough();
  user.give(layout, "layout");
});
afterAll(() => user.remove());

/** Runs a command line, and writes the mounts before and after it to files in `$0`. */
const script = `mount --make-rshared /
cut -d ' ' -f 3- /proc/self/mountinfo > "$0/before"
"$@"
cut -d ' ' -f 3- /proc/self/mountinfo > "$0/after"`;

describe.each(["root", "an ordinary user"])("as %s", (who) => {
  test.each([
    ["doctor", ["doctor"], "overlayfs can be mounted"],
    ["an import", ["images", "import", "oci:LAYOUT:latest", "--tag", "base:1"], "base:1"],
    ["a RUN", ["run", "-D", "--use", "base:1", "--", "echo", "fine"], "fine"],
    [
      "a RUN without a network",
      ["run", "-D", "--network", "none", "--use", "base:1", "--", "echo", "fine"],
      "fine",
    ],
    ["a file of an image", ["cat", "base:1:/etc/passwd"], "root:x:0:0"],
  ])("%s leaves all mounts as they were", (_, words, output) => {
    const isRoot = who === "root";
    const directory = temporaryDirectory();
    const place = isRoot ? layout : join(user.home, "layout");
    const environment = [
      "env",
      "-i",
      `PATH=${process.env.PATH}`,
      `HOME=${isRoot ? process.env.HOME : user.home}`,
    ];
    const bough = isRoot ? compileBough() : join(user.home, "bough");
    const command = [...environment, bough, ...words.map((word) => word.replace("LAYOUT", place))];
    const inNamespace = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, directory];
    const ended = Bun.spawnSync([...inNamespace, ...(isRoot ? [] : user.prefix), ...command]);
    expect(ended.stdout.toString()).toContain(output);
    const before = readMounts(join(directory, "before"));
    const after = readMounts(join(directory, "after"));
    expect(before).not.toEqual([]);
    expect(after.filter((mount) => !before.includes(mount))).toEqual([]);
    // If another test removes a directory, its mounts go from all namespaces.
    expect(before.filter((mount) => !after.includes(mount) && existsSync(mountPoint(mount)))).toEqual([]);
  });
});

function readMounts(path: string): string[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "");
}

/** Returns the fifth field of a line of mountinfo; the lines here lack the first two. */
function mountPoint(mount: string): string {
  return mount.split(" ")[2] ?? "";
}
