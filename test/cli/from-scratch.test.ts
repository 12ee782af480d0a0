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

const noUser = "no user app in the image: it has no /etc/passwd";
const noGroup = "no group grp in the image: it has no /etc/group";
const passwd = "COPY <<EOF /etc/passwd\napp:x:5:6::/:/bin/sh\nEOF\n";

/** As Docker 28.5: who is root, or a number, needs no table; another name needs a file in the image, any will do. */
test.each<[string, string | undefined]>([
  ["COPY --chown=root:root f /x", "x 0:0"],
  ["COPY --chown=: f /x", "x 0:0"],
  ["COPY --chown=5: f /x", "x 5:0"],
  ["USER app\nCOPY f /x", "x 0:0"],
  ["USER app\nWORKDIR /", undefined],
  [`${passwd}COPY --chown=app f /x`, "x 5:6"],
  [`${passwd}COPY --chown=app:grp f /x`, "x 5:6"],
  [`${passwd}COPY --chown=nobody f /x`, "x 0:0"],
  ["COPY f /y\nCOPY --chown=app f /x", "x 0:0"],
  ["WORKDIR /y\nCOPY --chown=app f /x", "x 0:0"],
  ["COPY --chown=app f /x", noUser],
  ["ADD --chown=app f /x", noUser],
  ["COPY --link --chown=app f /x", noUser],
  ["COPY --parents --chown=app f /x/", noUser],
  ["COPY --chown=app <<EOF /x\nhi\nEOF", noUser],
  ["COPY --from=base:1 --chown=app /etc/passwd /x", noUser],
  ["ARG o=app\nCOPY --chown=$o f /x", noUser],
  ["ENV A=1\nCOPY --chown=app f /x", noUser],
  ["COPY --chown=app:7 f /x", noUser],
  ["COPY --chown=5:grp f /x", noGroup],
  ["COPY --chown=:grp f /x", noGroup],
  ["COPY --chown=root:grp f /x", noGroup],
  ["USER app\nWORKDIR /x", noUser],
  ["USER 5:grp\nWORKDIR /x", noGroup],
])("an owner by name: %j gives %p", async (lines, expected) => {
  for (const start of ["FROM scratch\n", "FROM scratch AS empty\nENV B=1\nFROM empty\n"]) {
    const { exitCode, stdout, stderr } = await bough(
      makeContext(`${start}${lines}\n`),
      "build",
      ".",
      "--docker",
      "-q",
    );
    if (expected?.startsWith("no ") === true) {
      expect(stderr).toContain(`[ERROR] Dockerfile:`);
      expect(stderr).toContain(`: ${expected}\n`);
      expect(exitCode).toBe(1);
      continue;
    }
    expect(exitCode).toBe(0);
    const found = (await listImage(stdout.trim())).map((line) => line.replace(/^\S+ (\S+) \.\//, "$1 "));
    const [name, owner] = expected?.split(" ") ?? [];
    expect(found.find((line) => line.endsWith(` ${name}`))).toBe(name && `${owner} ${name}`);
  }
});

test("its image is pruned like any other, and built again", async () => {
  const context = makeContext("FROM scratch\nCOPY f /\n");
  const first = await bough(context, "build", ".", "-q");
  expect((await bough(context, "engine", "prune", "--all", "--yes")).exitCode).toBe(0);
  const again = await bough(context, "build", ".", "-q");
  expect(again).toMatchObject({ exitCode: 0 });
  expect(again.stdout).not.toBe(first.stdout);
});
