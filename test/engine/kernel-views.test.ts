import { expect, test } from "bun:test";
import { canMountAnother } from "../../src/engine/system/user-namespace.ts";

/** Returns lines of `/proc/self/mountinfo`, given as `type root point`. */
function mountsOf(...words: string[]): string {
  return words
    .map((text, index) => {
      const [type, root, point] = text.split(" ");
      return `${index + 20} 19 0:${index} ${root} ${point} rw,relatime - ${type} ${type} rw`;
    })
    .join("\n");
}

test.each([
  ["a machine's", "proc", ["ext4 / /", "proc / /proc", "tmpfs / /tmp"], true],
  ["one with binfmt_misc", "proc", ["proc / /proc", "binfmt_misc / /proc/sys/fs/binfmt_misc"], true],
  ["a container's", "proc", ["proc / /proc", "tmpfs /null /proc/kcore", "proc /sys /proc/sys"], false],
  [
    "a container's, with a whole one beside it",
    "proc",
    ["proc / /proc", "tmpfs / /proc/acpi", "proc / /p"],
    true,
  ],
  ["only a part", "proc", ["proc /sys /proc/sys"], false],
  ["none", "proc", ["ext4 / /"], false],
  ["one whose name begins like another's", "proc", ["proc / /proc", "tmpfs / /process"], true],
  ["a machine's", "sysfs", ["sysfs / /sys", "cgroup2 / /sys/fs/cgroup", "debugfs / /sys/kernel/debug"], true],
  [
    "one with groups of version 1",
    "sysfs",
    ["sysfs / /sys", "tmpfs / /sys/fs/cgroup", "cgroup / /sys/fs/cgroup/cpu"],
    true,
  ],
  ["a container's", "sysfs", ["sysfs / /sys", "tmpfs / /sys/firmware"], false],
] as const)("%s %s: another can be mounted: %j", (_, view, mounts, expected) => {
  expect(canMountAnother(view, mountsOf(...mounts))).toBe(expected);
});
