/** A destination whose disk is full: the message names it, and nothing that is half written stays. */
import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { runOnSmallDisk } from "../support/small-disk.ts";

setDefaultTimeout(120_000);

const context = temporaryDirectory();
const environment = { BOUGH_HOME: temporaryDirectory(), LANG: "de_DE.UTF-8" };

beforeAll(async () => {
  writeFiles(context, {
    Dockerfile: "FROM base:1\nRUN mkdir /d && echo > /d/a && head -c 9000000 /dev/urandom > /d/b\n",
  });
  const layout = await makeBusyboxLayout(temporaryDirectory());
  for (const words of [
    ["images", "import", layout, "--tag", "base:1"],
    ["build", "--tag", "app"],
  ]) {
    const { exitCode, stderr } = await runBough(["--local", ...words], {
      workingDirectory: context,
      environment,
    });
    if (exitCode !== 0) throw new Error(stderr);
  }
});

test.each<[string, string[], string | RegExp, RegExp]>([
  ["rootfs", ["images", "export", "app", "rootfs:disk/to"], "", /disk\/to$/],
  ["tar", ["images", "export", "app", "tar:disk/to"], "", /disk\/to$/],
  ["oci", ["images", "export", "app", "oci:disk/to"], "", /disk\/to$/],
  ["docker-archive", ["images", "export", "app", "docker-archive:disk/to"], "", /disk\/to$/],
  // Small files may be written while a large one is copied.
  [
    "-o",
    ["build", "-o", "disk/to"],
    /^to\/bin\/busybox\nto\/d\/a\n(to\/etc\/\w+\n)*$/,
    /disk\/to\/(d\/b|etc\/\w+)$/,
  ],
  ["cp of a file", ["cp", "app:/d/b", "disk/to"], "", /disk\/to$/],
  ["cp of a directory", ["cp", "app:/d", "disk/"], "d/a\n", /disk\/d\/b$/],
])("%s", async (_, words, left, place) => {
  const ended = await runOnSmallDisk(["--local", "-q", ...words], {
    ...{ workingDirectory: context, environment, bytes: 5_000_000, usedBytes: 0 },
  });
  const [, files] = ended.stdout.split(/ballast\n/);
  expect(files).toEqual(typeof left === "string" ? left : expect.stringMatching(left));
  const [, path, reason] = /^\[ERROR\] cannot write (.*): (.*)\n$/.exec(ended.stderr) ?? [];
  expect([path, reason]).toEqual([expect.stringMatching(place), "no space is left on the disk"]);
  expect(ended.exitCode).toBe(1);
});
