/** A program in PATH has a helper's name, but not its options: Alpine's are BusyBox's unless others are installed. */
import { beforeAll, expect, test } from "bun:test";
import { chmodSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";

let state: string;
beforeAll(async () => {
  state = temporaryDirectory();
  const layout = await makeBusyboxLayout(temporaryDirectory());
  await runBough(["--local", "images", "import", layout, "--tag", "base:1"], options(process.env.PATH));
});

function options(PATH = "", workingDirectory = "/") {
  return { workingDirectory, environment: { BOUGH_HOME: state, PATH } };
}

test.each([
  ["setpriv", "util-linux", "--pdeathsig", ["build", "."]],
  ["unshare", "util-linux", "--kill-child", ["build", "."]],
  ["tar", "tar", "--format=posix", ["cp", "base:1:/bin", "-"]],
])("BusyBox's %s is named by doctor, and by the command that needs another one", async (...row) => {
  const [program, packageName, option, words] = row;
  const directory = temporaryDirectory();
  writeFiles(directory, { Dockerfile: "FROM base:1\nRUN true\n", bin: "directory/" });
  const path = join(directory, "bin", program);
  symlinkSync("/bin/busybox", path);
  const place = options(`${join(directory, "bin")}:${process.env.PATH}`, directory);
  const detail = `${path} (busybox) is not the ${program} that the embedded engine needs: unrecognized option '${option}'`;
  const fix = `Install the ${program} of ${packageName}, and put its directory before that of ${path} in PATH.`;

  const examined = await runBough(["--local", "doctor"], place);
  expect(examined.stdout).toContain(`failed   engine's programs  ${detail}\n         fix: ${fix}\n`);
  expect(examined.stdout.match(/^(failed|warning) .*/gm)).toHaveLength(1);
  expect(examined.exitCode).toBe(1);

  const { exitCode, stderr } = await runBough(["--local", ...words], place);
  expect(stderr).toContain(detail);
  expect(stderr).toContain(fix);
  expect(exitCode).toBe(1);
});

test("a kernel on which runc may not run its copy in memory is named, and crun as the way out", async () => {
  const directory = temporaryDirectory();
  const message =
    "unable to start container process: error during container init: fork/exec /proc/self/fd/7: permission denied";
  const entry = JSON.stringify({ level: "error", msg: `runc run failed: ${message}` });
  // `--log FILE` is among runc's first options.
  writeFiles(directory, {
    "bin/runc": `#!/bin/sh\nwhile [ "$1" != --log ]; do shift; done\necho '${entry}' > "$2"; exit 1\n`,
  });
  chmodSync(join(directory, "bin/runc"), 0o755);
  const main = [process.execPath, join(import.meta.dir, "../../src/main.ts")];
  // The setting is one of the PID namespace.
  const script = `echo 1 > /proc/sys/vm/memfd_noexec && exec "$@"`;
  const child = Bun.spawn(
    [
      "unshare",
      "--pid",
      "--fork",
      "--mount-proc",
      "sh",
      "-c",
      script,
      "sh",
      ...main,
      "--local",
      "run",
      "base:1",
      "true",
    ],
    {
      env: {
        BOUGH_HOME: state,
        BOUGH_RUNTIME: "runc",
        PATH: `${join(directory, "bin")}:${process.env.PATH}`,
      },
      ...{ stdin: "ignore", stdout: "pipe", stderr: "pipe" },
    },
  );
  const { stderr, exitCode } = await endOf(child);
  expect(stderr).toContain(
    `the sandbox could not be started: runc run failed: ${message}; vm.memfd_noexec is 1 on this machine`,
  );
  expect(stderr).toContain("or install crun");
  expect(exitCode).not.toBe(0);
});
