import { expect, test } from "bun:test";
import { findContainer } from "../../src/cli/process/container.ts";
import { freeSubIds, maxProcesses } from "../../src/cli/process/user-namespace.ts";

test.each([
  [[""], "100000-165535"],
  [["ann:100000:65536\n", ""], "165536-231071"],
  [["ann:100000:65536\nben:165536:65536\n", "ann:100000:65536\ncarl:300000:1000\n"], "301000-366535"],
  [["ann:1000:1\n# not a line\n"], "100000-165535"],
])("free sub-ids beside %j: %s", (tables, range) => {
  expect(freeSubIds(tables)).toBe(range);
});

test.each([
  [96_365, 32_768, 16_384],
  [96_365, 4_194_304, 95_341],
  [4096, 32_768, 3072],
  [100, 32_768, 75],
  [1, 32_768, 1],
])("with %i processes for a user and %i for the machine, a namespace gets %i", (own, most, within) => {
  expect(maxProcesses(own, most)).toBe(within);
});

test.each([
  ["no container", {}, {}, undefined],
  [
    "Docker",
    {},
    { "/.dockerenv": "", "/proc/self/mountinfo": "1 2 0:1 /x /etc/hostname rw - ext4 /dev/vda rw" },
    "Docker",
  ],
  [
    "a machine made from an image of Docker",
    {},
    { "/.dockerenv": "", "/proc/self/mountinfo": "1 2 0:1 / / rw - ext4 /dev/vda rw" },
    undefined,
  ],
  ["Podman", { container: "podman" }, { "/run/.containerenv": "" }, "Podman"],
  ["a pod", { KUBERNETES_SERVICE_HOST: "10.0.0.1" }, { "/.dockerenv": "" }, "Kubernetes"],
  ["a pod without variables of services", {}, { "/var/run/secrets/kubernetes.io": "" }, "Kubernetes"],
  [
    "gVisor",
    {},
    { "/.dockerenv": "", "/proc/version": "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n" },
    "gVisor",
  ],
  [
    "that version of Linux",
    {},
    { "/proc/version": "Linux version 4.4.0-21-generic (buildd@lgw01-21) ...\n" },
    undefined,
  ],
  ["LXC", {}, { "/run/systemd/container": "lxc\n" }, "LXC"],
  ["systemd-nspawn", { container: "systemd-nspawn" }, {}, "another kind"],
] as const)("the kind of container: %s", (_, environment, files, expected) => {
  const contents = new Map<string, string>(Object.entries(files));
  expect(
    findContainer(
      environment,
      (path) => contents.has(path),
      (path) => contents.get(path) ?? "",
    ),
  ).toBe(expected);
});
