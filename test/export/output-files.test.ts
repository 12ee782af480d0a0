/** The files of a build on this machine, `-o type=local` and `-o type=tar`: attributes, platforms, times, and what a killed process leaves. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { makeOrdinaryUser, type OrdinaryUser } from "../support/ordinary-user.ts";

setDefaultTimeout(180_000);

const places = temporaryDirectory();
const environment = { BOUGH_HOME: temporaryDirectory(), BOUGH_DOCKER: "1" };
let user: OrdinaryUser;
let layout: string;

const bough = (words: readonly string[], more: Readonly<Record<string, string>> = {}) =>
  runBough(["--local", ...words], { workingDirectory: places, environment: { ...environment, ...more } });

async function build(context: string, words: readonly string[], more = {}) {
  const ended = await bough(["build", context, ...words], more);
  if (ended.exitCode !== 0) throw new Error(ended.stderr);
  return ended;
}

beforeAll(async () => {
  layout = temporaryDirectory();
  await bough(["images", "import", await makeBusyboxLayout(layout), "--tag", "base:1"]);
  user = makeOrdinaryUser();
  user.giveBough();
});
afterAll(() => {
  for (const each of [environment.BOUGH_HOME, places, layout]) rmSync(each, { recursive: true, force: true });
  user.remove();
});

/** All that a file system has, except devices, with times from long before the build. */
const everything = `FROM base:1 AS made
RUN mkdir /o && cd /o && mkdir setgid sticky open read-only empty private && echo 1 > setuid && echo 2 > open/to-all && echo 3 > hidden && \\
  chmod 4755 setuid && chmod 2711 setgid && chmod 1777 sticky && chmod 777 open && chmod 666 open/to-all && chmod 555 read-only && \\
  chmod 700 private && chmod 0 hidden && chown 5:6 open/to-all && ln open/to-all hard && ln -s /etc/passwd link && ln -s none dangling && \\
  mkfifo -m 620 pipe && touch "$(printf 'new\\nline')" && find . -depth -exec touch -h -d @1000000000 {} +
FROM scratch
COPY --from=made /o /
`;
const modes = [
  ...["dangling symlink 777", "empty directory 755", "hard file 666", "hidden file 0", "link symlink 777"],
  ...[
    "new\nline file 644",
    "open directory 777",
    "open/to-all file 666",
    "pipe fifo 620",
    "private directory 700",
  ],
  ...["read-only directory 555", "setgid directory 2711", "setuid file 4755", "sticky directory 1777"],
];

/** Returns each path below a directory with its type and mode. Checks owners and times. */
function treeOf(directory: string, uid: number): string[] {
  return readdirSync(directory, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => {
      const stats = lstatSync(join(directory, name));
      expect([name, stats.uid, stats.mtimeMs]).toEqual([name, uid, 1_000_000_000_000]);
      const types = {
        isFile: "file",
        isDirectory: "directory",
        isSymbolicLink: "symlink",
        isFIFO: "fifo",
      } as const;
      const type = Object.entries(types).find(([is]) => stats[is as keyof typeof types]())?.[1] ?? "device";
      return `${name} ${type} ${(stats.mode & 0o7777).toString(8)}`;
    });
}

describe("a directory gets the files as docker writes them", () => {
  test("with all bits of their modes, whatever the umask, their times, links and pipes; owned by this user", async () => {
    writeFiles(join(places, "all"), { Dockerfile: everything });
    const before = process.umask(0o077);
    try {
      await build("all", ["-o", "out"]);
    } finally {
      process.umask(before);
    }
    const out = join(places, "out");
    expect(treeOf(out, 0)).toEqual(modes);
    expect(lstatSync(join(out, "hard")).ino).toBe(lstatSync(join(out, "open/to-all")).ino);
    expect([readlinkSync(join(out, "link")), readlinkSync(join(out, "dangling"))]).toEqual([
      "/etc/passwd",
      "none",
    ]);
  });

  test("as an ordinary user without devices, which a warning says; as root with them", async () => {
    const device = everything.replace("mkfifo", "mknod zero c 1 5 && mkfifo");
    writeFiles(join(places, "device"), { Dockerfile: device });
    await build("device", ["-o", "devices"]);
    expect(treeOf(join(places, "devices"), 0)).toEqual([...modes, "zero device 644"]);
    const context = user.give(join(places, "all"), "context");
    const base = user.give(layout, "base");
    const own = (...words: string[]) =>
      Bun.spawnSync(
        [
          ...user.prefix,
          "env",
          "-i",
          `PATH=${process.env.PATH}`,
          "BOUGH_DOCKER=1",
          `${user.home}/bough`,
          "--local",
          ...words,
        ],
        { cwd: user.home },
      );
    expect(own("images", "import", `oci:${base}:latest`, "--tag", "base:1").exitCode).toBe(0);
    const built = own("build", context, "-o", "out");
    expect(built.stderr.toString()).not.toContain("left out");
    expect(treeOf(join(user.home, "out"), lstatSync(user.home).uid)).toEqual(modes);
  });

  test("in place of what has their names, and without touching anything else or following a link", async () => {
    writeFiles(join(places, "simple"), {
      Dockerfile: "FROM scratch\nCOPY d /\n",
      "d/file": "new",
      "d/directory/in": "new",
    });
    const out = join(places, "over");
    writeFiles(out, { "file/old": "", other: "kept" });
    mkdirSync(join(places, "outside"));
    symlinkSync("../outside", join(out, "directory"));
    await build("simple", ["-o", "over"]);
    expect(readdirSync(out, { recursive: true, encoding: "utf8" }).sort()).toEqual([
      "directory",
      "directory/in",
      "file",
      "other",
    ]);
    expect(readdirSync(join(places, "outside"))).toEqual([]);
  });
});

const platforms = ["--platform", "linux/amd64,linux/arm64"];
const multi = ["--build-arg", "BUILDKIT_MULTI_PLATFORM=1"];
const split = ["linux_amd64/f-amd64", "linux_arm64/f-arm64"];

describe("files of platforms", () => {
  beforeAll(() => {
    const Dockerfile = "FROM scratch\nARG TARGETARCH\nCOPY f /f-$TARGETARCH\n";
    writeFiles(join(places, "platforms"), { Dockerfile, f: "" });
    writeFiles(join(places, "same"), { Dockerfile: "FROM scratch\nCOPY f /f\n", f: "" });
  });
  const machine = ["--platform", "linux/amd64"];

  test.each<[options: string[], output: string, files: string[]]>([
    [machine, "type=local", ["f-amd64"]],
    [machine, "type=local,platform-split=true", ["linux_amd64/f-amd64"]],
    [[...machine, ...multi], "type=local", ["linux_amd64/f-amd64"]],
    [[...machine, ...multi], "type=local,platform-split=false", ["f-amd64"]],
    [platforms, "type=local", split],
    [platforms, "type=local,platform-split=false", ["f-amd64", "f-arm64"]],
    [machine, "type=tar", ["f-amd64"]],
    [machine, "type=tar,platform-split=true", ["f-amd64"]],
    [[...machine, ...multi], "type=tar", ["linux_amd64/f-amd64"]],
    [platforms, "type=tar", split],
  ])("%p -o %s", async (options, output, files) => {
    const dest = `p-${Bun.hash(JSON.stringify([options, output]))}`;
    await build("platforms", [...options, "-o", `${output},dest=${dest}`]);
    const at = join(places, dest);
    const found = output.startsWith("type=tar")
      ? Bun.spawnSync(["tar", "-tf", at]).stdout.toString().split("\n")
      : readdirSync(at, { recursive: true, encoding: "utf8" });
    expect([...found].filter((name) => name.includes("f-")).sort()).toEqual(files);
  });

  test("in one directory must not replace each other", async () => {
    const { exitCode, stderr } = await bough([
      "build",
      "same",
      ...platforms,
      "-o",
      "type=local,dest=same-out,platform-split=false",
    ]);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(
      "cannot overwrite f from linux/amd64 with linux/arm64 when split option is disabled",
    );
    const wrong = await bough(["build", "same", "--build-arg", "BUILDKIT_MULTI_PLATFORM=some", "-o", "some"]);
    expect(wrong).toMatchObject({ exitCode: 2 });
    expect(existsSync(join(places, "some"))).toBe(false);
  });
});

test("SOURCE_DATE_EPOCH is the time of all files, in a directory and in an archive", async () => {
  const words = ["-o", "type=local,dest=dated", "-o", "type=tar,dest=dated.tar"];
  await build("simple", words, { SOURCE_DATE_EPOCH: "1200000000" });
  for (const name of readdirSync(join(places, "dated"), { recursive: true, encoding: "utf8" }))
    expect(lstatSync(join(places, "dated", name)).mtimeMs).toBe(1_200_000_000_000);
  const listed = Bun.spawnSync(["tar", "--utc", "-tvf", "dated.tar"], { cwd: places }).stdout.toString();
  expect(
    listed
      .trim()
      .split("\n")
      .every((line) => line.includes(" 2008-01-10 21:20 ")),
  ).toBe(true);
});

test.each(["type=tar", "type=oci", "type=docker"])(
  "%s leaves nothing behind if it is killed",
  async (type) => {
    const place = join(places, `killed-${type.slice(5)}`);
    mkdirSync(place);
    const content = join(places, "large");
    if (!existsSync(join(content, "Dockerfile"))) {
      writeFiles(content, { Dockerfile: "FROM scratch\nCOPY . /\n" });
      writeFileSync(join(content, "random"), crypto.getRandomValues(new Uint8Array(65_536)));
      for (let size = 65_536; size < 64 * 2 ** 20; size *= 2)
        Bun.spawnSync(["sh", "-c", "cat random random > twice && mv twice random"], { cwd: content });
      await build("large", []);
    }
    const main = join(import.meta.dir, "../../src/main.ts");
    const building = Bun.spawn(
      ["bun", main, "--local", "build", "large", "-o", `${type},dest=${place}/out`],
      {
        cwd: places,
        env: { ...process.env, ...environment },
        stderr: "ignore",
      },
    );
    const writes = () => {
      try {
        const open = readdirSync(`/proc/${building.pid}/fd`).map((fd) =>
          readlinkSync(`/proc/${building.pid}/fd/${fd}`),
        );
        return open.some((path) => path.startsWith(`${place}/`) && path.endsWith(" (deleted)"));
      } catch {
        return false;
      }
    };
    while (!writes() && building.exitCode === null) await Bun.sleep(1);
    building.kill("SIGKILL");
    await building.exited;
    expect(building.signalCode).toBe("SIGKILL");
    expect(readdirSync(place)).toEqual([]);
  },
);
