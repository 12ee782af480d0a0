/** Scripts that fail print an error, not an excerpt of their source. */
import { expect, test } from "bun:test";
import { chmodSync, cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";

const root = join(import.meta.dir, "../..");

test.each<[string, string, string, string | undefined, string]>([
  [
    "the demo, if bough fails",
    "demo.ts",
    "",
    "echo 'error: no' >&2; exit 3",
    "error: no\nerror: the demo ends here: bough exited with 3\n",
  ],
  ["the demo, without bough", "demo.ts", "", undefined, "/dist/bough is missing: ./scripts/build makes it\n"],
  ["the benchmarks, without bough", "benchmarks/main.ts", "startup", undefined, ""],
  ["the benchmarks, with a wrong option", "benchmarks/main.ts", "--chekc", "exit 0", "--chekc"],
  [
    "a release for an unknown target",
    "packaging/release.ts",
    "amiga",
    undefined,
    "error: there is no target amiga; ",
  ],
  ["a check of a missing image", "packaging/check-image.ts", "", undefined, "error: "],
])("%s", async (_, script, word, bough, message) => {
  const directory = temporaryDirectory();
  cpSync(join(root, "scripts/example"), join(directory, "scripts/example"), { recursive: true });
  mkdirSync(join(directory, "dist"));
  if (bough !== undefined) {
    writeFileSync(join(directory, "dist/bough"), `#!/bin/sh\n${bough}\n`);
    chmodSync(join(directory, "dist/bough"), 0o755);
  }
  const words = word === "" ? [] : [word];
  const child = Bun.spawn([process.execPath, join(root, "scripts", script), ...words], {
    cwd: directory,
    env: { PATH: process.env.PATH, HOME: directory },
    stdout: "pipe",
    stderr: "pipe",
  });
  const { exitCode, stderr } = await endOf(child);
  expect(exitCode).toBe(1);
  expect(stderr).toContain(message);
  expect(stderr).toMatch(/^error: /m);
  expect(stderr).not.toMatch(/^\s*(\d+ \||at )|Bun v\d/m);
});

test("the demo says why there is no public image, where the program is, and what to do next", async () => {
  const directory = temporaryDirectory();
  cpSync(join(root, "scripts/example"), join(directory, "scripts/example"), { recursive: true });
  const program = join(directory, "dist/bough");
  const fails = "[ERROR] importing failed: no network\nThe host docker.io was not found.";
  writeFiles(directory, {
    "dist/bough": {
      text: `#!/bin/sh\n[ "$2 $5" != "-q busybox:stable" ] || { echo '${fails}' >&2; exit 1; }\n`,
      mode: 0o755,
    },
  });
  const child = Bun.spawn([process.execPath, join(root, "scripts/demo.ts")], {
    cwd: directory,
    env: { PATH: process.env.PATH, HOME: directory },
    stdout: "pipe",
    stderr: "pipe",
  });
  const { exitCode, stdout } = await endOf(child);
  expect(stdout).toContain(`so the base is made from Debian's busybox-static:\n${fails}\n`);
  const [, next] = stdout.split(`\n\nThe program is ${program}. `);
  expect(next).toBe(
    [
      "To have it as the command bough, in a directory of your PATH:",
      `  install -D ${program} ~/.local/bin/bough`,
      "Then, in a directory with a Dockerfile:",
      "  bough build --docker . --tag app  # build what docker build would build",
      "  bough run app                     # run it",
      "  bough help docker                 # what else to write in place of docker's commands\n",
    ].join("\n"),
  );
  // Builds as docker build does, or the example would not be the image that its Dockerfile describes.
  const builds = stdout.split("\n").filter((line) => /^\$ bough .*\bbuild /.test(line));
  expect(builds.filter((line) => !line.includes(" --docker "))).toEqual([]);
  expect(builds.length).toBeGreaterThan(2);
  expect(exitCode).toBe(0);
});
