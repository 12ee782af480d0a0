/** `scripts/test`, with a script in place of the tests. */
import { describe, expect, test } from "bun:test";
import { cpSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { diskForTests, temporaryDirectory } from "../support/bough.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";
import { commandLines } from "../support/processes.ts";

/** Starts `scripts/test`, with the words before its name, in a directory where a script replaces the Bun of toolchain.sh. */
function start(bun: string, before: readonly string[] = []) {
  const directory = temporaryDirectory();
  const at = (name: string) => join(directory, name);
  writeFiles(directory, {
    "bin/bun": { text: `#!/bin/sh\n${bun}\n`, mode: 0o755 },
    "scripts/toolchain.sh":
      'set -eu\nbring_packages() { :; }\nbring_programs() { :; }\nsay() { echo "$*" >&2; }\n',
    "bough-1.2": { text: "#!/bin/sh\necho begun\n", mode: 0o755 },
    temporary: "directory/",
  });
  cpSync(join(import.meta.dir, "../../scripts/test"), at("scripts/test"));
  const child = Bun.spawn([...before, at("scripts/test"), "some"], {
    env: {
      PATH: `${at("bin")}:${process.env.PATH}`,
      TMPDIR: at("temporary"),
      TEST_PROGRAM: at("bough-1.2"),
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  return { child, leftIn: () => readdirSync(at("temporary")) };
}

test("the tests can run a program of any name in TEST_PROGRAM, and the script returns their exit code", async () => {
  const { child, leftIn } = start('"$TEST_PROGRAM"; exit 3');
  expect(await new Response(child.stdout).text()).toBe("begun\n");
  expect(await child.exited).toBe(3);
  expect(leftIn()).toEqual([]);
});

describe("where user namespaces are forbidden, one sentence says before the tests what fails", () => {
  const inChroot = (root: string) => [
    ...["unshare", "--mount", "--propagation", "private", "sh", "-ec"],
    'mount --rbind / "$1"; root=$1; shift; exec chroot "$root" "$@"',
    ...["sh", root],
  ];
  const sentence =
    "user namespaces are forbidden here (unshare: unshare failed: Operation not permitted), as in a chroot and in many containers: more than a hundred tests, those of ordinary users, fail\n";
  test.each([
    ["and after them, if one fails", 1, `${sentence}begun\n${sentence}`],
    ["and not after them, if all pass", 0, `${sentence}begun\n`],
  ])("%s", async (_, exitCode, expected) => {
    const { child } = start(`echo begun >&2; exit ${exitCode}`, inChroot(temporaryDirectory()));
    expect(await endOf(child)).toEqual({ exitCode, stdout: "", stderr: expected });
  });

  test("and none where they are allowed", async () => {
    const { child } = start("exit 1");
    expect(await endOf(child)).toEqual({ exitCode: 1, stdout: "", stderr: "" });
  });
});

test.each([
  ["SIGTERM", 143],
  ["SIGINT", 130],
] as const)("%s ends the tests and everything that they have started", async (signal, exitCode) => {
  const seconds = `6${exitCode}.5`;
  const { child, leftIn } = start(`sleep ${seconds} & "$TEST_PROGRAM"; wait`);
  const reader = child.stdout.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toBe("begun\n");
  child.kill(signal);
  expect(await child.exited).toBe(exitCode);
  expect(leftIn()).toEqual([]);
  while (commandLines().includes(`sleep ${seconds}`)) await Bun.sleep(5);
});

test("an empty TEST_DISK means the default directory", () => {
  const { TEST_DISK: before } = process.env;
  process.env.TEST_DISK = "";
  expect(diskForTests()).toMatch(/^\//);
  if (before === undefined) delete process.env.TEST_DISK;
  else process.env.TEST_DISK = before;
});
