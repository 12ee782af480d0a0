/** `scripts/test`, with a script in place of the tests. */
import { expect, test } from "bun:test";
import { cpSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { diskForTests, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { commandLines } from "../support/processes.ts";

/** Starts `scripts/test` in a directory where a script replaces the Bun that toolchain.sh installs. */
function start(bun: string) {
  const directory = temporaryDirectory();
  const at = (name: string) => join(directory, name);
  writeFiles(directory, {
    "bin/bun": { text: `#!/bin/sh\n${bun}\n`, mode: 0o755 },
    "scripts/toolchain.sh": "set -eu\nbring_packages() { :; }\nbring_programs() { :; }\n",
    "bough-1.2": { text: "#!/bin/sh\necho begun\n", mode: 0o755 },
    temporary: "directory/",
  });
  cpSync(join(import.meta.dir, "../../scripts/test"), at("scripts/test"));
  const child = Bun.spawn([at("scripts/test"), "some"], {
    env: {
      PATH: `${at("bin")}:${process.env.PATH}`,
      TMPDIR: at("temporary"),
      TEST_PROGRAM: at("bough-1.2"),
    },
    stdout: "pipe",
  });
  return { child, leftIn: () => readdirSync(at("temporary")) };
}

test("the tests can run a program of any name in TEST_PROGRAM, and the script returns their exit code", async () => {
  const { child, leftIn } = start('"$TEST_PROGRAM"; exit 3');
  expect(await new Response(child.stdout).text()).toBe("begun\n");
  expect(await child.exited).toBe(3);
  expect(leftIn()).toEqual([]);
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
