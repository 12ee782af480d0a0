/** `FROM scratch` on the embedded engine, in both modes; `test/docker` compares the trees with Docker's. */
import { describe, expect, test } from "bun:test";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { openLocalBough } from "../support/local-bough.ts";

const bough = await openLocalBough();

function makeContext(dockerfile: string): string {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: dockerfile, f: "f\n", "d/link": { link: "f" }, "d/none": "directory/" });
  cpSync("/bin/busybox", join(context, "busybox"), { dereference: true });
  return context;
}

/** All entries of an image, as a RUN in another image lists them. */
async function listImage(image: string): Promise<string[]> {
  const context = makeContext(
    `FROM base:1\nCOPY --from=${image} / /x\nRUN cd /x && find . -mindepth 1 -exec stat -c '%A %u:%g %n' {} + | sort -k3`,
  );
  const { stderr } = await bough(context, "build", ".", "--docker", "--progress", "plain");
  return [...stderr.matchAll(/^\S+ \d+:\d+ \.\/.+$/gm)].map(([line]) => line);
}

describe.each([["--no-docker"], ["--docker"]])("%s", (mode) => {
  const build = (dockerfile: string) => bough(makeContext(dockerfile), "build", ".", "-q", mode);

  test("has files, links, directories and a WORKDIR without a RUN", async () => {
    const { stdout } = await build("FROM scratch\nWORKDIR /w/x\nCOPY --chown=5:6 f d ./\nCOPY f /f\n");
    expect(await listImage(stdout.trim())).toEqual([
      "-rw-r--r-- 0:0 ./f",
      "drwxr-xr-x 0:0 ./w",
      "drwxr-xr-x 0:0 ./w/x",
      "-rw-r--r-- 5:6 ./w/x/f",
      "lrwxrwxrwx 5:6 ./w/x/link",
      "drwxr-xr-x 5:6 ./w/x/none",
    ]);
  });

  test("is the same image in every build without other instructions", async () => {
    const [first, again] = [await build("FROM scratch\n"), await build("ARG B=scratch\nFROM $B\n")];
    expect(first).toMatchObject({ exitCode: 0 });
    expect(again.stdout).toBe(first.stdout);
    expect(await listImage(first.stdout.trim())).toEqual([]);
  });

  test("runs a program that was copied, and adds only its changes", async () => {
    const { stdout } = await build(
      `FROM scratch\nCOPY --chmod=755 busybox /busybox\nCOPY d /d\nRUN ["/busybox", "touch", "/made"]\n`,
    );
    expect(await listImage(stdout.trim())).toEqual([
      "-rwxr-xr-x 0:0 ./busybox",
      "drwxr-xr-x 0:0 ./d",
      "lrwxrwxrwx 0:0 ./d/link",
      "drwxr-xr-x 0:0 ./d/none",
      "-rw-r--r-- 0:0 ./made",
    ]);
  });

  test.each(["FROM scratch\nCOPY f /\n", "FROM scratch\n"])(
    "a RUN says that there is no shell (%j)",
    async (start) => {
      for (const run of ["RUN echo hi\n", "ENV A=1\nRUN <<END\necho hi\nEND\n"]) {
        const { exitCode, stderr } = await build(`${start}${run}`);
        expect(exitCode).not.toBe(0);
        expect(stderr).toContain("the image has no shell (/bin/sh) to run this with");
        expect(stderr).not.toContain("To open");
      }
    },
  );

  test("a missing program is reported differently", async () => {
    const { stderr } = await build('FROM scratch\nRUN ["/none"]\n');
    expect(stderr).toContain("Exit code 127: a program was not found in the image.");
  });

  test("--check accepts it for the engine only", async () => {
    const context = makeContext("FROM scratch\nCOPY f /\n");
    expect(await bough(context, "build", ".", "--check", mode)).toMatchObject({ exitCode: 0 });
    const elsewhere = ["--url", "http://localhost:1", "build", ".", "--check", mode];
    const environment = { BOUGH_HOME: temporaryDirectory() };
    const { exitCode, stdout } = await runBough(elsewhere, { workingDirectory: context, environment });
    expect(exitCode).toBe(2);
    expect(stdout).toContain("FROM scratch is not supported");
  });
});

test("its image is pruned like any other, and built again", async () => {
  const context = makeContext("FROM scratch\nCOPY f /\n");
  const first = await bough(context, "build", ".", "-q");
  expect((await bough(context, "engine", "prune", "--all", "--yes")).exitCode).toBe(0);
  const again = await bough(context, "build", ".", "-q");
  expect(again).toMatchObject({ exitCode: 0 });
  expect(again.stdout).not.toBe(first.stdout);
});
